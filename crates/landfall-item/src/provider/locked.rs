//! The section `providers` of the lock: versions of providers, their packages and hashes.

use super::address::{ProviderName, ProviderPlatform};
use landfall_model::Digest;
use serde::{Deserialize, Serialize};

/// A version of a provider in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedProvider {
    /// The source address and the version.
    pub name: ProviderName,
    /// SHA-256 of the artifact's index, which lists a manifest for each package.
    pub digest: Digest,
    /// The platforms that the manifest requests, sorted; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<ProviderPlatform>,
    /// The package for each platform, sorted by platform.
    pub packages: Vec<LockedProviderPackage>,
}

/// The package of a provider for one platform: a zip archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedProviderPackage {
    /// The platform.
    pub platform: ProviderPlatform,
    /// The URL from which `pull` downloads the archive.
    pub url: String,
    /// SHA-256 of the archive: the `zh:` hash in lock files of OpenTofu and Terraform.
    pub digest: Digest,
    /// The size of the archive in bytes.
    pub size: u64,
    /// The hash of the files in the archive, as in
    /// `h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=`.
    pub h1: String,
}

impl LockedProviderPackage {
    /// The hash of the archive in the form of lock files.
    pub(super) fn zh(&self) -> String {
        zh(&self.digest)
    }
}

/// `digest` in the form of lock files.
pub(super) fn zh(digest: &Digest) -> String {
    format!("zh:{}", digest.hex())
}
