//! The manifest and blobs of a set of packages, as parts to transfer. The manifest is computed from
//! the lock alone, so every command gets the same bytes.

use super::locked::{LockedPackageSet, PackageSource};
use super::request::PackageSetRequest;
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, MediaType, media_type};
use serde_json::json;
use std::collections::BTreeSet;

/// The annotation with the URL of a layer's file.
const URL: &str = "dev.landfall.url";
/// The annotation with the path of a layer's file (image-spec, annotations.md).
const TITLE: &str = "org.opencontainers.image.title";
const EMPTY: &[u8] = b"{}";
const KEY: &str = "application/pgp-keys";

/// Lists the parts of a set: an artifact with a layer for each index, package and key.
pub(super) fn entry(set: &LockedPackageSet) -> LockEntry {
    let (manifest, mut parts) = manifest(set);
    let top = descriptor(&manifest, media_type::OCI_MANIFEST);
    parts.push(EntryPart {
        descriptor: top.clone(),
        origin: PartOrigin::Computed(manifest),
    });
    LockEntry {
        kind: EntryKind::Package,
        name: set.name.clone(),
        digest: set.digest.clone(),
        layout_name: format!("{}:{}", repository(&set.name), tag(&set.digest)),
        top,
        artifact_type: Some(media_type::LANDFALL_PACKAGES),
        parts,
        referrers: Vec::new(),
        referrer_blobs: std::collections::BTreeSet::new(),
    }
}

/// Builds the locked set for `request`, and sorts the packages of `sources`.
pub(super) fn set(
    request: &PackageSetRequest,
    expected: BTreeSet<String>,
    mut sources: Vec<PackageSource>,
) -> LockedPackageSet {
    // the resolver's order of packages has no meaning, and equal sets must get equal digests
    for source in &mut sources {
        source
            .packages
            .sort_by(|a, b| (&a.name, &a.arch, &a.version).cmp(&(&b.name, &b.arch, &b.version)));
    }
    let mut set = LockedPackageSet {
        name: request.name.clone(),
        digest: Digest::sha256(b""),
        architectures: request.architectures.clone(),
        install: request.install.clone(),
        recommends: request.recommends,
        index: request.index,
        base: request.bases.iter().map(ToString::to_string).collect(),
        expected: expected.into_iter().collect(),
        sources,
    };
    set.digest = digest(&set);
    set
}

/// Computes the digest of a set, ignoring its `digest` field.
pub(super) fn digest(set: &LockedPackageSet) -> Digest {
    Digest::sha256(&manifest(set).0)
}

/// The repository of a set's artifact: `packages/`, then the first 16 hex digits of the name's
/// SHA-256.
pub(super) fn repository(name: &str) -> String {
    format!("packages/{}", Digest::sha256(name.as_bytes()).short(16))
}

/// The tag of a set's artifact: the first 12 hex digits of its digest.
pub(super) fn tag(digest: &Digest) -> String {
    digest.short(12)
}

/// The manifest and the parts that it names, without duplicates.
fn manifest(set: &LockedPackageSet) -> (Vec<u8>, Vec<EntryPart>) {
    let config = descriptor(EMPTY, media_type::OCI_EMPTY);
    let mut parts = vec![EntryPart {
        descriptor: config.clone(),
        origin: PartOrigin::Computed(EMPTY.into()),
    }];
    // two sources may have the same key or package, which is transferred once
    let mut known = BTreeSet::from([config.digest.clone()]);
    let mut layers = Vec::new();
    let mut add = |descriptor: Descriptor, title: &str, url: &str, origin: PartOrigin| {
        layers.push(json!({
            "mediaType": descriptor.media_type,
            "digest": descriptor.digest,
            "size": descriptor.size,
            "annotations": {URL: url, TITLE: title},
        }));
        if known.insert(descriptor.digest.clone()) {
            parts.push(EntryPart { descriptor, origin });
        }
    };
    let package_type = if set.is_yum() {
        media_type::RPM
    } else {
        media_type::DEB
    };
    for source in &set.sources {
        let key = source.key.as_bytes();
        add(
            descriptor(key, KEY),
            &format!("{}.asc", source.signed_by),
            &source.url,
            PartOrigin::Computed(key.into()),
        );
        for index in &source.indexes {
            let layer = Descriptor {
                digest: index.digest.clone(),
                size: index.size,
                media_type: media_type::OCTETS.into(),
            };
            // the `by-hash` URL comes first: a repository keeps that file for a while after it
            // replaces the index
            let by_hash = source.by_hash_url(index);
            let urls = by_hash
                .into_iter()
                .chain(source.urls_of(&index.url, &index.path));
            add(
                layer,
                title(&index.path, &index.url),
                &index.url,
                origin(urls.collect()),
            );
        }
        for package in &source.packages {
            let layer = Descriptor {
                digest: package.digest.clone(),
                size: package.size,
                media_type: MediaType::from(package_type),
            };
            add(
                layer,
                title(&package.path, &package.url),
                &package.url,
                origin(source.urls_of(&package.url, &package.path)),
            );
        }
    }
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "artifactType": media_type::LANDFALL_PACKAGES,
        "config": {"mediaType": config.media_type, "digest": config.digest, "size": config.size},
        "layers": layers,
        "annotations": {TITLE: set.name},
    });
    (manifest.to_string().into_bytes(), parts)
}

/// The title of a layer, which clients of registries use as the path of its file: `path`, or host
/// and path of `url` if `path` leads out of the repository.
fn title<'t>(path: &'t str, url: &'t str) -> &'t str {
    let is_below = !path.starts_with("../") && !path.contains("://");
    let below_host = url.split_once("://").map(|(_, rest)| rest);
    below_host.filter(|_| !is_below).unwrap_or(path)
}

fn origin(mut urls: Vec<String>) -> PartOrigin {
    match urls.len() {
        1 => PartOrigin::Url(urls.remove(0)),
        _ => PartOrigin::Urls(urls),
    }
}

fn descriptor(bytes: &[u8], media_type: &'static str) -> Descriptor {
    Descriptor {
        digest: Digest::sha256(bytes),
        size: bytes.len() as u64,
        media_type: media_type.into(),
    }
}
