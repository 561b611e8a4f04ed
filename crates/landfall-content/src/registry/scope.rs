//! The scope of a request: the access that it needs to a repository.

/// The access that a request needs, as it is requested from the token service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TokenScope {
    /// The repository; empty for a login that is not about a repository.
    pub(super) repository: String,
    pub(super) push: bool,
    pub(super) delete: bool,
    /// The repository that a blob is mounted from.
    pub(super) from: Option<String>,
}

impl TokenScope {
    /// Returns the equivalent scope for a registry without the action `delete`, or `None` if this
    /// scope does not contain `delete`. Quay requires `push` to delete, and its token service
    /// refuses a scope with an unknown action.
    pub(super) fn without_delete(&self) -> Option<TokenScope> {
        self.delete.then(|| TokenScope {
            push: true,
            delete: false,
            ..self.clone()
        })
    }

    /// Returns the scopes for the token service (distribution token specification, "Token Scope").
    pub(super) fn to_strings(&self) -> Vec<String> {
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
        // the request's own scope comes first, because some token services read only the first one
        std::iter::once(own).chain(other).collect()
    }
}
