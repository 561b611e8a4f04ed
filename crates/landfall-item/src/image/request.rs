//! An image as a manifest asks for it.

use crate::field_conflict::{FieldConflict, join};
use landfall_model::document::SourceLocation;
use landfall_model::{Digest, ImageRef, Platform};

/// A wanted image.
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
    /// Where it is written.
    pub at: SourceLocation,
}

impl ImageRequest {
    /// Takes from `other` what this lacks.
    pub(super) fn join(&mut self, other: &ImageRequest) -> Result<(), FieldConflict> {
        let list = |platforms: &Vec<Platform>| match &platforms[..] {
            [] => "all".to_owned(),
            some => some
                .iter()
                .map(Platform::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        join("digest", &mut self.pin, &other.pin)?;
        FieldConflict::unless_equal("list of platforms", &self.platforms, &other.platforms, list)?;
        FieldConflict::unless_equal(
            "`referrers`",
            &self.referrers,
            &other.referrers,
            bool::to_string,
        )?;
        join("update policy", &mut self.update, &other.update)
    }
}
