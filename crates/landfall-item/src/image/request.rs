//! A request for an image.

use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::{Digest, ImageRef, Platform};

/// A request for one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// The reference: with a tag and no digest, or with only a digest if no tag was written.
    pub name: ImageRef,
    /// The digest that the tag must have. `None` for an image that is named by digest.
    pub pin: Option<Digest>,
    /// The platforms, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// The update policy: what `landfall update` may move the tag to.
    pub update: Option<UpdateRule>,
    /// Whether its referrers are looked up and carried.
    pub referrers: bool,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}
