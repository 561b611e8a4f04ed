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
    /// The hashes in lock files of OpenTofu or Terraform. Each package must have one of them, so a
    /// lock file without hashes accepts none. `None` if no lock file names the version; then every
    /// package is accepted.
    pub hashes: Option<BTreeSet<String>>,
    /// What `landfall update` may move the version to.
    pub update: Option<UpdateRule>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

impl ProviderRequest {
    /// Whether a package with this hash is accepted.
    pub(super) fn accepts(&self, hash: &str) -> bool {
        self.hashes
            .as_ref()
            .is_none_or(|hashes| hashes.contains(hash))
    }

    /// Whether a package may be accepted by its `h1:` hash, which is known only after the download.
    pub(super) fn has_file_hashes(&self) -> bool {
        let mut hashes = self.hashes.iter().flatten();
        hashes.any(|hash| hash.starts_with("h1:"))
    }

    /// Whether lock files name the version, but none has a hash for it.
    pub(super) fn lacks_hashes(&self) -> bool {
        self.hashes.as_ref().is_some_and(BTreeSet::is_empty)
    }
}
