//! A request for an image.

use crate::LocalPlace;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::{Digest, ImageRef, PlatformRequest};

/// A request for one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// The reference: with a tag and no digest, or with only a digest if no tag was written.
    pub name: ImageRef,
    /// The archive next to the manifest that has the image.
    pub archive: Option<LocalPlace>,
    /// The digest that the tag must have. `None` for an image that is named by digest.
    pub pin: Option<Digest>,
    /// The platforms, sorted; empty means all.
    pub platforms: Vec<PlatformRequest>,
    /// The update policy: what `landfall update` may move the tag to.
    pub update: Option<UpdateRule>,
    /// Whether its referrers are looked up and carried.
    pub referrers: bool,
    /// Whether the images that it lists are carried too.
    pub listed: BundleImages,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl ImageRequest {
    /// A request for an image of a registry, without an update policy and without the images that
    /// it lists.
    pub(crate) fn new(
        name: ImageRef,
        pin: Option<Digest>,
        platforms: Vec<PlatformRequest>,
        referrers: bool,
        at: SourceLocation,
    ) -> ImageRequest {
        ImageRequest {
            name,
            archive: None,
            pin,
            platforms,
            update: None,
            referrers,
            listed: BundleImages::Omitted,
            at,
        }
    }
}

/// Whether the images that an image lists are carried too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BundleImages {
    /// They are not carried; a note says how many there are.
    #[default]
    Omitted,
    /// They are carried. It is an error if the image lists none.
    Carried,
    /// The image is itself listed, with this many bundles above it: if it is a bundle, its images
    /// are carried too.
    Nested(u8),
}

impl BundleImages {
    /// The setting of the images that an image with this setting lists; `None` if they are not
    /// carried.
    pub(super) fn of_members(self) -> Option<BundleImages> {
        match self {
            BundleImages::Omitted => None,
            BundleImages::Carried => Some(BundleImages::Nested(1)),
            BundleImages::Nested(depth) => Some(BundleImages::Nested(depth.saturating_add(1))),
        }
    }
}
