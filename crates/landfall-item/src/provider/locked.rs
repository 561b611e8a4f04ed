//! A version of a provider in the lock, and how the lock writes it.

use super::address::{ProviderName, ProviderPlatform};
use crate::text::quoted;
use landfall_model::Digest;
use serde::Deserialize;
use std::fmt::{self, Write};

/// A version of a provider in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedProvider {
    /// The source address and the version.
    pub name: ProviderName,
    /// SHA-256 of the artifact's index, which lists a manifest for each package.
    pub digest: Digest,
    /// The platforms that the manifest requests, sorted; empty for all.
    #[serde(default)]
    pub platforms: Vec<ProviderPlatform>,
    /// The package for each platform, sorted by platform.
    pub packages: Vec<LockedProviderPackage>,
}

/// The package of a provider for one platform: a zip archive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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

/// Writes `provider` as YAML, one value on each line so that diffs are small.
pub(crate) fn write(provider: &LockedProvider, out: &mut dyn Write) -> fmt::Result {
    let LockedProvider {
        name,
        digest,
        platforms,
        packages,
    } = provider;
    writeln!(out, "- name: {}\n  digest: {digest}", quoted(name.as_str()))?;
    if !platforms.is_empty() {
        let texts: Vec<String> = platforms.iter().map(ToString::to_string).collect();
        writeln!(out, "  platforms: [{}]", texts.join(", "))?;
    }
    writeln!(out, "  packages:")?;
    for package in packages {
        let LockedProviderPackage {
            platform,
            url,
            digest,
            size,
            h1,
        } = package;
        let url = quoted(url);
        writeln!(
            out,
            "  - platform: {platform}\n    url: {url}\n    digest: {digest}\n    size: {size}\n    \
             h1: \"{h1}\""
        )?;
    }
    Ok(())
}
