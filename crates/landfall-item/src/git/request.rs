//! A request for a git repository.

use landfall_model::document::{SourceLocation, UpdateRule};

/// A request for branches and tags of one git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// The name in the lock: the URL of the repository with the scheme `git+https` or `git+http`.
    pub name: String,
    /// The http or https URL of the repository.
    pub url: String,
    /// The branches and tags as the manifest names them, and patterns of tags between slashes.
    /// Sorted.
    pub wanted: Vec<String>,
    /// What `landfall update` may move the tag to.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl GitRequest {
    /// The scheme prefix by which names of repositories differ from URLs of files.
    pub(super) const PREFIX: &'static str = "git+";

    /// Writes a pattern of tags as an element of `wanted`.
    pub(super) fn pattern(pattern: &str) -> String {
        format!("/{pattern}/")
    }

    /// The pattern in an element of `wanted`; `None` if it is the name of a ref.
    pub(super) fn pattern_in(wanted: &str) -> Option<&str> {
        wanted.strip_prefix('/')?.strip_suffix('/')
    }
}
