//! The kinds of content that the hosts of a lock serve.

/// The kind of content that a host of the lock serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceKind {
    Registry,
    Files,
    /// The index of a chart repository, or the discovery document of a registry of providers:
    /// `lock` and `update` request it, but a pull does not.
    Index,
}

impl SourceKind {
    pub(super) fn reason(self, name: &str) -> String {
        match self {
            SourceKind::Registry => format!("images of {name}"),
            SourceKind::Files => format!("files of {name}"),
            SourceKind::Index => format!("indexes of {name}"),
        }
    }
}
