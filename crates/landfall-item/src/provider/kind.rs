//! The section `providers` of the lock: versions of providers with their packages and hashes, as
//! items of the lock.

use super::address::{ProviderName, ProviderPlatform};
use crate::UrlFile;
use crate::artifact::{self, TITLE, URL, digest_fault};
use crate::file::is_file_url;
use crate::text::oversize;
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::{EntryKind, one_line};
use landfall_model::{Descriptor, Digest, host_component, media_type};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

impl LockedProvider {
    /// The packages, which clients download by URL.
    pub fn files(&self) -> Vec<UrlFile<'_>> {
        let packages = self.packages.iter();
        packages
            .map(|package| {
                let LockedProviderPackage {
                    url, digest, size, ..
                } = package;
                UrlFile::plain(EntryKind::Provider, url, digest, *size)
            })
            .collect()
    }

    /// URLs must be those of files, hashes must be valid, sizes must be plausible, packages must be
    /// sorted by platform, and the digest must match the packages. The digest does not cover `h1`,
    /// which `contradictions` compares with the content. Names were checked when they were parsed.
    pub(crate) fn implausibility(&self) -> Option<String> {
        if let Some(fault) = oversize(self.packages.iter().map(|package| package.size)) {
            return Some(fault);
        }
        if self.packages.is_empty() {
            return Some(format!("'{}' has no packages", self.name));
        }
        for package in &self.packages {
            if !is_file_url(&package.url) {
                let url = one_line(&package.url);
                return Some(format!("'{url}' is not an http or https URL of a file"));
            }
            if !is_file_hash(&package.h1) {
                return Some(format!("'{}' is not an h1 hash", one_line(&package.h1)));
            }
        }
        let mut pairs = self.packages.windows(2);
        if let Some(pair) = pairs.find(|pair| pair[0].platform >= pair[1].platform) {
            return Some(format!(
                "the packages are not sorted: '{}'",
                pair[1].platform
            ));
        }
        digest_fault(&self.name, &self.digest, &digest(self))
    }
}

/// Whether `text` has the form of an `h1:` hash: the prefix, and a SHA-256 in base64.
fn is_file_hash(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let hash = text.strip_prefix("h1:").unwrap_or_default();
    hash.len() == 44 && hash.bytes().all(is_allowed)
}

// The manifests and blobs of a locked provider, as parts to transfer: an index with a manifest for
// each platform, as OpenTofu reads them from a registry
// (opentofu.org/docs/cli/oci_registries/provider-mirror).

/// Lists the parts of a provider: the empty config, the packages, a manifest for each, and the
/// index.
pub(crate) fn entry(provider: &LockedProvider) -> LockEntry {
    let mut parts = vec![artifact::empty_config()];
    parts.extend(provider.packages.iter().map(|package| EntryPart {
        descriptor: package_descriptor(package),
        origin: PartOrigin::Url(package.url.clone()),
    }));
    let manifests = manifests(provider);
    let index = artifact::computed(index(provider, &manifests), media_type::OCI_INDEX);
    parts.extend(manifests);
    let name = &provider.name;
    artifact::entry(
        EntryKind::Provider,
        name.to_string(),
        &provider.digest,
        format!("{}:{}", own_repository(name), tag(name)),
        media_type::OPENTOFU_PROVIDER,
        parts,
        index,
    )
}

/// Computes the digest of a provider, ignoring its `digest` field.
pub(super) fn digest(provider: &LockedProvider) -> Digest {
    Digest::sha256(&index(provider, &manifests(provider)))
}

/// The repository of the artifact at a registry: `providers/<host>/<namespace>/<type>`.
pub(crate) fn own_repository(name: &ProviderName) -> String {
    let address = &name.address;
    let host = host_component(&address.host);
    format!(
        "providers/{host}/{}/{}",
        address.namespace, address.provider_type
    )
}

/// The tag of the artifact.
pub(crate) fn tag(name: &ProviderName) -> String {
    name.version.replace('+', "_")
}

/// The manifest of each package, in the order of the packages.
fn manifests(provider: &LockedProvider) -> Vec<EntryPart> {
    let manifest = |package: &LockedProviderPackage| {
        let mut layer = json!(package_descriptor(package));
        layer["annotations"] = json!({
            URL: package.url, TITLE: provider.name.package_file(&package.platform),
        });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type::OCI_MANIFEST,
            "artifactType": media_type::OPENTOFU_PROVIDER_TARGET,
            "config": artifact::empty_config().descriptor,
            "layers": [layer],
        });
        artifact::computed(manifest.to_string().into_bytes(), media_type::OCI_MANIFEST)
    };
    provider.packages.iter().map(manifest).collect()
}

fn index(provider: &LockedProvider, manifests: &[EntryPart]) -> Vec<u8> {
    let children = provider.packages.iter().zip(manifests);
    let children: Vec<Value> = children
        .map(|(package, manifest)| {
            let mut child = json!(manifest.descriptor);
            child["artifactType"] = json!(media_type::OPENTOFU_PROVIDER_TARGET);
            child["platform"] = json!({
                "architecture": package.platform.architecture, "os": package.platform.os,
            });
            child
        })
        .collect();
    let index = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_INDEX,
        "artifactType": media_type::OPENTOFU_PROVIDER,
        "manifests": children,
    });
    index.to_string().into_bytes()
}

fn package_descriptor(package: &LockedProviderPackage) -> Descriptor {
    Descriptor::new(
        package.digest.clone(),
        package.size,
        media_type::ZIP_PACKAGE,
    )
}

#[cfg(test)]
mod tests {
    use super::super::package_hash::hash_faults;
    use super::super::testing::zip_package;
    use super::*;
    use crate::lockfile::Lock;
    use landfall_content::MemoryBlobs;
    use std::collections::BTreeMap;

    fn provider() -> LockedProvider {
        let package = |platform: &str| LockedProviderPackage {
            platform: platform.parse().unwrap(),
            url: format!("https://example.com/{platform}.zip"),
            digest: Digest::sha256(platform.as_bytes()),
            size: 9,
            h1: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".into(),
        };
        let mut provider = LockedProvider {
            name: "provider:h/a/b:1.0.0+x".parse().unwrap(),
            digest: Digest::sha256(b""),
            platforms: vec!["linux_amd64".parse().unwrap()],
            packages: vec![package("darwin_arm64"), package("linux_amd64")],
        };
        provider.digest = super::digest(&provider);
        provider
    }

    #[test]
    fn a_provider_is_written_and_read() {
        let lock = Lock {
            version: 1,
            providers: vec![provider()],
            ..Lock::default()
        };
        assert_eq!(Lock::parse("l", &lock.to_text()).unwrap(), lock);
        assert_eq!(tag(&provider().name), "1.0.0_x");
    }

    #[test]
    fn values_that_landfall_never_writes_are_refused() {
        type Change = fn(&mut LockedProvider);
        let changes: [(Change, &str); 6] = [
            (|provider| provider.packages.clear(), "no packages"),
            (|provider| provider.packages.reverse(), "not sorted"),
            (
                |provider| provider.packages[0].url = "file:///etc/x".into(),
                "URL of a file",
            ),
            (
                |provider| provider.packages[0].h1 = "h1:\"\n".into(),
                "h1 hash",
            ),
            (|provider| provider.packages[0].size = u64::MAX, "plausible"),
            (|provider| provider.packages[1].size = 10, "other fields"),
        ];
        for (change, word) in changes {
            let mut provider = provider();
            change(&mut provider);
            let fault = provider.implausibility().unwrap();
            assert!(fault.contains(word), "{fault}");
        }
    }

    #[test]
    fn an_h1_hash_that_differs_from_the_content_is_reported() {
        let archive = zip_package(&[("x", b"content")]);
        let mut provider = provider();
        let digest = Digest::sha256(&archive);
        provider.packages[1].digest = digest.clone();
        provider.packages[1].size = archive.len() as u64;
        let faults = |provider: &LockedProvider, content: &[u8]| {
            let content = bytes::Bytes::copy_from_slice(content);
            let blobs = MemoryBlobs(BTreeMap::from([(digest.clone(), content)]));
            hash_faults(provider, &blobs)
        };
        let wrong = faults(&provider, &archive);
        assert_eq!(wrong.len(), 1, "one package has no content: {wrong:?}");
        let (_, found) = wrong[0].split_once("has the hash ").unwrap();
        let (found, _) = found.split_once(',').unwrap();
        assert!(wrong[0].contains("linux_amd64"), "{wrong:?}");
        provider.packages[1].h1 = found.into();
        assert_eq!(faults(&provider, &archive), [""; 0]);
        let damaged = vec![0; archive.len()];
        assert!(faults(&provider, &damaged)[0].contains("no directory"));
    }
}
