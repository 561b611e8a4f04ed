//! A request for a chart.

use super::images::Discovery;
use super::name::ChartName;
use crate::LocalPlace;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{Digest, PlatformRequest};

/// A request for one version of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRequest {
    /// The name, with repository and version.
    pub name: ChartName,
    /// Where a chart next to the manifest is.
    pub local: Option<LocalPlace>,
    /// The digest that the chart must have. For a chart in a registry, it is that of the manifest;
    /// for a chart in an HTTP repository, that of the archive.
    pub pin: Option<Digest>,
    /// The rule by which `landfall update` may change the version.
    pub update: Option<UpdateRule>,
    /// The keys, one of which must have signed the provenance.
    pub keys: Option<OpenPgpKeys>,
    /// The settings with which its images are discovered; `None` if they are not.
    pub discover: Option<Discovery>,
    /// The platforms of the discovered images.
    pub platforms: Vec<PlatformRequest>,
    /// Whether the referrers of the discovered images are carried.
    pub referrers: bool,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
    /// The chain of dependencies that requires this chart; `None` if the manifest lists the chart.
    pub named_by: Option<Box<DependencyOrigin>>,
}

/// The chain of dependencies from a chart of the manifest to a chart that the manifest does not
/// list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyOrigin {
    /// The number of dependencies in the chain.
    pub depth: usize,
    /// The chart of the manifest, if its signature was verified. A note then says that the
    /// signature does not cover the chart's dependencies.
    pub signed: Option<ChartName>,
}
