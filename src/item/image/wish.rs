//! An image as a manifest asks for it.

use crate::document::Place;
use crate::model::{Digest, ImageRef, Platform};

/// A wanted image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedImage {
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
    /// Where it is written.
    pub at: Place,
}
