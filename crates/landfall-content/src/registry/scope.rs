//! What a request wants to do in a repository, as token services are told.

/// What a request wants to do in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TokenScope {
    /// The repository; empty for a sign-in that is about none.
    pub(super) repository: String,
    /// Whether it writes.
    pub(super) push: bool,
    /// Whether it deletes.
    pub(super) delete: bool,
    /// A repository that a blob is mounted from.
    pub(super) from: Option<String>,
}

impl TokenScope {
    /// The scopes of the token that the request needs (distribution token specification).
    pub(super) fn words(&self) -> Vec<String> {
        if self.repository.is_empty() {
            return Vec::new();
        }
        let actions = match (self.push, self.delete) {
            (_, true) => "pull,delete",
            (true, false) => "pull,push",
            (false, false) => "pull",
        };
        let own = format!("repository:{}:{actions}", self.repository);
        let other = self
            .from
            .as_ref()
            .map(|from| format!("repository:{from}:pull"));
        std::iter::once(own).chain(other).collect()
    }
}
