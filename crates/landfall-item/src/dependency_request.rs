//! Requests for what a locked item depends on, in addition to the requests of manifests.

use super::chart::ChartRequest;
use super::git::GitRequest;
use super::image::ImageRequest;

/// A request for something that a locked item depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyRequest {
    /// An image that was found in a chart.
    Image(ImageRequest),
    /// A chart that another chart depends on.
    Chart(ChartRequest),
    /// A repository with a commit that a submodule of another repository pins.
    Git(GitRequest),
}
