//! What finds the images of a chart. It stands above the items, so it is handed to whoever locks
//! them.

use super::discovery::Discovery;
use super::locked::{ChartImage, OpenReference};
use landfall_model::Digest;

/// The images of a chart.
#[derive(Debug, Default)]
pub struct FoundImages {
    /// Its images, each once, sorted.
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
