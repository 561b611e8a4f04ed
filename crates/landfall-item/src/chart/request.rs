//! A chart as a manifest asks for it.

use super::name::ChartName;
use crate::field_conflict::{FieldConflict, join};
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_model::{Digest, Platform};
use std::fmt;

/// A wanted chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRequest {
    /// Its name with the version.
    pub name: ChartName,
    /// The digest that it must have: that of the manifest in a registry, of the archive in an HTTP
    /// repository.
    pub pin: Option<Digest>,
    /// Its update policy.
    pub update: Option<String>,
    /// Who must have signed its provenance.
    pub keys: Option<OpenPgpKeys>,
    /// How its images are found, where they are.
    pub discover: Option<Discovery>,
    /// The platforms of the images that are found in it.
    pub platforms: Vec<Platform>,
    /// Whether the referrers of these images are carried.
    pub referrers: bool,
    /// Where it is written.
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

/// How the images of a chart are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Values over those of the chart, as YAML; the last one wins.
    pub values: Vec<String>,
    /// The version of Kubernetes to render for.
    pub kubernetes: Option<String>,
    /// The version of helm that renders it; without one it is read as it is.
    pub helm: Option<String>,
}

impl Discovery {
    /// What the lock says of it, so that a change is seen.
    pub(super) fn said(&self) -> String {
        let values = (!self.values.is_empty()).then(|| {
            format!(
                "values {}",
                Digest::sha256(self.values.join("\n---\n").as_bytes()).short(12)
            )
        });
        let kubernetes = self
            .kubernetes
            .as_ref()
            .map(|version| format!("kubernetes {version}"));
        let helm = self.helm.as_ref().map(|version| format!("helm {version}"));
        let said: Vec<String> = [helm, kubernetes, values].into_iter().flatten().collect();
        if said.is_empty() {
            "as it is".into()
        } else {
            said.join(", ")
        }
    }
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said())
    }
}

impl ChartRequest {
    /// Takes from `other` what this lacks.
    pub(super) fn join(&mut self, other: &ChartRequest) -> Result<(), FieldConflict> {
        join("digest", &mut self.pin, &other.pin)?;
        join("update policy", &mut self.update, &other.update)?;
        join("key", &mut self.keys, &other.keys)?;
        if let (Some(own), Some(other)) = (&mut self.named_by, &other.named_by) {
            own.depth = own.depth.min(other.depth);
            own.signed = own.signed.take().or_else(|| other.signed.clone());
        }
        join("discovery of images", &mut self.discover, &other.discover)
    }
}
