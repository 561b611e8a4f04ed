//! A text that a position reads as an image.

/// A text that a position reads as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageClaim<'t> {
    pub(super) written: &'t str,
    /// Whether it is certainly an image, whatever it looks like.
    pub(super) sure: bool,
    /// Whether it means `latest` without a tag.
    pub(super) in_container: bool,
}
