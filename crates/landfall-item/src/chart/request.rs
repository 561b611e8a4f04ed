//! A chart as a manifest asks for it.

use super::discovery::Discovery;
use super::name::ChartName;
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{Digest, Platform};

/// A request for one version of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRequest {
    /// Its name with the version.
    pub name: ChartName,
    /// The digest that it must have: that of the manifest in a registry, of the archive in an HTTP
    /// repository.
    pub pin: Option<Digest>,
    /// What `landfall update` may move the version to.
    pub update: Option<String>,
    /// Who must have signed its provenance.
    pub keys: Option<OpenPgpKeys>,
    /// How its images are found, where they are.
    pub discover: Option<Discovery>,
    /// The platforms of the images that are found in it.
    pub platforms: Vec<Platform>,
    /// Whether the referrers of these images are carried.
    pub referrers: bool,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
    /// Which charts name it; `None` if the manifest does.
    pub named_by: Option<Box<DependencyOrigin>>,
}

/// The charts that name a chart which the manifest does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyOrigin {
    /// How long the chain of charts is from one of the manifest to this one.
    pub depth: usize,
    /// The chart of the manifest whose signature was verified, where it was.
    pub signed: Option<ChartName>,
}
