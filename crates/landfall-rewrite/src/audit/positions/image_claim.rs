//! A text that a position reads as an image.

/// A text that a position reads as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageClaim<'t> {
    pub(super) written: &'t str,
    /// Whether it is certainly an image, even if it does not look like a reference.
    pub(super) sure: bool,
    /// Whether a container uses the image, so that a name without a tag means `latest`.
    pub(super) in_container: bool,
}
