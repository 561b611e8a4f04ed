//! An image as a manifest asks for it.

use landfall_model::document::SourceLocation;
use landfall_model::{Digest, ImageRef, Platform};

/// A request for one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// With a tag and no digest, or, where no tag was written, with a digest alone.
    pub name: ImageRef,
    /// The digest that a tag must have. `None` for an image that is named by digest.
    pub pin: Option<Digest>,
    /// The platforms, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// What `landfall update` may move to.
    pub update: Option<String>,
    /// Whether its referrers are looked up and carried.
    pub referrers: bool,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}
