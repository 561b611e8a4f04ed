//! A request for a version of a provider.

use super::address::{ProviderName, ProviderPlatform};
use landfall_model::document::{SourceLocation, UpdateRule};
use std::collections::BTreeSet;

/// A request for one version of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRequest {
    /// The source address and the version.
    pub name: ProviderName,
    /// The platforms, sorted; empty for all that the registry has.
    pub platforms: Vec<ProviderPlatform>,
    /// The hashes in lock files of OpenTofu or Terraform. Each package must have one of them. The
    /// set is empty if no lock file has hashes for the version; then every package is accepted.
    pub hashes: BTreeSet<String>,
    /// What `landfall update` may move the version to.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl ProviderRequest {
    /// Whether a package with this hash is accepted.
    pub(super) fn accepts(&self, hash: &str) -> bool {
        self.hashes.is_empty() || self.hashes.contains(hash)
    }

    /// Whether a package may be accepted by its `h1:` hash, which is known only after the download.
    pub(super) fn has_file_hashes(&self) -> bool {
        self.hashes.iter().any(|hash| hash.starts_with("h1:"))
    }
}
