//! The Git LFS server that has the large files of a repository.

/// A Git LFS server: the URL of its API, and the repository that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LfsServer {
    /// The URL to which `/objects/batch` is appended.
    pub url: String,
    /// The URL of the repository whose `.lfsconfig` names the server. `None` if the user named the
    /// server or its repository.
    pub named_by: Option<String>,
}

impl LfsServer {
    /// The server of the repository at `url`, unless its `.lfsconfig` names another one (git-lfs,
    /// docs/api/server-discovery.md).
    pub fn of_repository(url: &str) -> LfsServer {
        let ending = if url.ends_with(".git") { "" } else { ".git" };
        LfsServer {
            url: format!("{url}{ending}/info/lfs"),
            named_by: None,
        }
    }
}
