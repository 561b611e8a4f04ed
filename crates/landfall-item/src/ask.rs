//! What a locked item asks for besides itself.

use super::chart::WantedChart;
use super::image::WantedImage;

/// A wish that no manifest has: a locked item has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// An image.
    Image(WantedImage),
    /// A chart.
    Chart(WantedChart),
}
