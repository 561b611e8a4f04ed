//! The manifests and blobs of a locked provider, as parts to transfer: an index with a manifest for
//! each platform, as OpenTofu reads them from a registry
//! (opentofu.org/docs/cli/oci_registries/provider-mirror). The index and manifests are computed
//! from the lock alone, so every command gets the same bytes.

use super::address::ProviderName;
use super::locked::{LockedProvider, LockedProviderPackage};
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, host_component, media_type};
use serde_json::{Value, json};

/// The annotation with the URL of a package.
const URL: &str = "dev.landfall.url";
/// The annotation with the name of a file (image-spec, annotations.md).
const TITLE: &str = "org.opencontainers.image.title";
const EMPTY: &[u8] = b"{}";

/// Lists the parts of a provider: the empty config, the packages, a manifest for each, and the
/// index.
pub(super) fn entry(provider: &LockedProvider) -> LockEntry {
    let mut parts = vec![computed(EMPTY.into(), media_type::OCI_EMPTY)];
    parts.extend(provider.packages.iter().map(|package| EntryPart {
        descriptor: package_descriptor(package),
        origin: PartOrigin::Url(package.url.clone()),
    }));
    let manifests = manifests(provider);
    let index = computed(index(provider, &manifests), media_type::OCI_INDEX);
    let top = index.descriptor.clone();
    parts.extend(manifests);
    parts.push(index);
    let name = &provider.name;
    LockEntry {
        kind: EntryKind::Provider,
        name: name.to_string(),
        digest: provider.digest.clone(),
        layout_name: format!("{}:{}", own_repository(name), tag(name)),
        top,
        artifact_type: Some(media_type::OPENTOFU_PROVIDER),
        parts,
        referrers: Vec::new(),
        referrer_blobs: std::collections::BTreeSet::new(),
    }
}

/// Computes the digest of a provider, ignoring its `digest` field.
pub(super) fn digest(provider: &LockedProvider) -> Digest {
    Digest::sha256(&index(provider, &manifests(provider)))
}

/// The repository of the artifact at a registry: `providers/<host>/<namespace>/<type>`.
pub(super) fn own_repository(name: &ProviderName) -> String {
    let address = &name.address;
    let host = host_component(&address.host);
    format!(
        "providers/{host}/{}/{}",
        address.namespace, address.provider_type
    )
}

/// The tag of the artifact.
pub(super) fn tag(name: &ProviderName) -> String {
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
            "config": computed(EMPTY.into(), media_type::OCI_EMPTY).descriptor,
            "layers": [layer],
        });
        computed(manifest.to_string().into_bytes(), media_type::OCI_MANIFEST)
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
    Descriptor {
        digest: package.digest.clone(),
        size: package.size,
        media_type: media_type::ZIP_PACKAGE.into(),
    }
}

fn computed(bytes: Vec<u8>, media_type: &'static str) -> EntryPart {
    EntryPart {
        descriptor: Descriptor {
            digest: Digest::sha256(&bytes),
            size: bytes.len() as u64,
            media_type: media_type.into(),
        },
        origin: PartOrigin::Computed(bytes),
    }
}
