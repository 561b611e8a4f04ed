//! A text that a position claims as an image.

/// A text that is to be read as an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim<'t> {
    pub(super) written: &'t str,
    /// It is an image by its position, whatever it looks like.
    pub(super) sure: bool,
    /// Without a tag it means `latest`.
    pub(super) in_container: bool,
}
