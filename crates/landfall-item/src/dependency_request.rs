//! What a locked item asks for besides itself.

use super::chart::ChartRequest;
use super::image::ImageRequest;

/// A wish that no manifest has: a locked item has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyRequest {
    /// An image that was found in a chart.
    Image(ImageRequest),
    /// A chart that another chart depends on.
    Chart(ChartRequest),
}
