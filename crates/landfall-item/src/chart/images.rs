//! The interface of the code that finds images in charts. Its implementation is in a crate above
//! this one, so the caller of `lock` passes it in.

use super::discovery::Discovery;
use super::locked::{ChartImage, OpenReference};
use landfall_model::Digest;

/// The images that were found in a chart.
#[derive(Debug, Default)]
pub struct FoundImages {
    /// The images, sorted, without duplicates.
    pub images: Vec<ChartImage>,
    /// Texts that may be an image reference; a person has to decide.
    pub open: Vec<OpenReference>,
}

/// Finds the images of charts.
pub trait FindImages: Send + Sync {
    /// Finds the images of the chart in the archive with `digest`, whose bytes are `archive`.
    ///
    /// # Errors
    /// If the chart cannot be read or rendered.
    fn images(
        &self,
        archive: &[u8],
        digest: &Digest,
        how: &Discovery,
    ) -> Result<FoundImages, String>;
}
