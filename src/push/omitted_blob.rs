//! A blob that the content of a push does not include.

use landfall_model::Descriptor;

/// An omitted blob that a delivery needs.
pub(super) struct OmittedBlob<'a> {
    pub(super) blob: Descriptor,
    /// The positions of the pending deliveries that need the blob.
    pub(super) stops: Vec<usize>,
    /// Repositories that may have the blob.
    pub(super) candidates: Vec<&'a str>,
}
