//! What a rewrite changes besides names.

/// What a rewrite changes besides names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Rewrite references in comments too.
    pub comments: bool,
    /// Add the locked digest to references that have only a tag.
    pub pin: bool,
}
