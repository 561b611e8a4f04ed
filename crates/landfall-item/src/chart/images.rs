//! What finds the images of a chart. It stands above the items, so it is handed to whoever locks
//! them.

use super::locked::{ChartImage, OpenReference};
use super::request::Discovery;
use landfall_model::Digest;

/// The images of a chart.
#[derive(Debug, Default)]
pub struct FoundImages {
    /// Its images, each once, sorted.
    pub images: Vec<ChartImage>,
    /// What may be one.
    pub open: Vec<OpenReference>,
}

/// Finds the images of charts.
pub trait FindImages: Send + Sync {
    /// The images of the chart in the archive with `digest`, whose bytes are `archive`.
    ///
    /// # Errors
    /// Why they cannot be looked for.
    fn images(
        &self,
        archive: &[u8],
        digest: &Digest,
        how: &Discovery,
    ) -> Result<FoundImages, String>;
}
