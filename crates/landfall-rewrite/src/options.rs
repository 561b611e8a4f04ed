//! The options of a rewrite.

/// The changes that a rewrite makes in addition to the names of known references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewriteOptions {
    /// Rewrite references in comments too.
    pub comments: bool,
    /// Add the locked digest to references that have only a tag.
    pub pin: bool,
}
