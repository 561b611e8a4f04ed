//! Describes a bundle as a CycloneDX document that links the SBOMs in the bundle.
//!
//! This file has the whole document, with the SBOMs and attestations that the bundle links;
//! `component.rs` has one item of the lock, or one package of a set, as a component.

mod component;

use self::component::{ItemFacts, component, hash, package_component, package_ref};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_content::{AttachedReferrer, BlobRead, LockEntry};
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, Failure, Limits, Manifest, read_referrer};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The bundle that a document describes.
pub struct SbomSubject<'a> {
    /// The digest of the bundle.
    pub digest: &'a Digest,
    /// The fingerprint of the bundle's lock.
    pub lock: &'a Digest,
    /// The series of the bundle, and the number of the bundle in it.
    pub series: Option<(String, u64)>,
    /// Whether the bundle lacks items.
    pub is_partial: bool,
    /// The time to record in the document (RFC 3339); `None` records none.
    pub time: Option<String>,
}

/// The document about `lock`, and the linked documents by item name. `blobs` has their content.
/// `licences` returns the licences that an image declares; it is not called for other items.
///
/// # Errors
/// If the metadata of a package repository cannot be read.
pub fn cyclonedx(
    subject: &SbomSubject<'_>,
    lock: &Lock,
    blobs: &dyn BlobRead,
    limits: &Limits,
    licences: impl Fn(&LockEntry) -> Option<String>,
) -> Result<(Value, BTreeMap<String, Vec<LinkedDocument>>), Failure> {
    let mut all = BTreeMap::new();
    let mut components = Vec::new();
    // a package that several sets contain is listed once
    let mut packages: BTreeMap<String, Value> = BTreeMap::new();
    let mut sets = Vec::new();
    for set in &lock.packages {
        let mut refs = BTreeSet::new();
        for described in set.describe(blobs, limits)? {
            let package = package_ref(&described);
            packages
                .entry(package.clone())
                .or_insert_with(|| package_component(&described));
            refs.insert(package);
        }
        sets.push(json!({"ref": set.name, "dependsOn": refs}));
    }
    for item in lock.items() {
        let entry = item.entry();
        let own = linked_documents(&entry, &item.source(), blobs);
        let known = ItemFacts {
            image: item.reference(),
            platforms: item.platforms().unwrap_or_default(),
            licences: if entry.kind == EntryKind::Image {
                licences(&entry)
            } else {
                None
            },
            linked: &own,
        };
        components.push(component(&entry, &known));
        all.insert(entry.name, own);
    }
    // the lock is sorted by kind; the document is sorted by name
    components.sort_by(|a, b| a["bom-ref"].as_str().cmp(&b["bom-ref"].as_str()));
    let names: Vec<&Value> = components
        .iter()
        .map(|component| &component["bom-ref"])
        .collect();
    let mut dependencies = vec![json!({"ref": subject.digest, "dependsOn": names})];
    dependencies.append(&mut sets);
    components.extend(packages.into_values());
    let root = subject.digest.to_string();
    // a bundle without a series has no name of its own
    let (name, version) = match &subject.series {
        Some((series, number)) => (series.clone(), number.to_string()),
        None => ("bundle".to_owned(), subject.digest.short(12)),
    };
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial_number(subject.digest),
        // always 1: another bundle has another serial number
        "version": 1,
        "metadata": {
            "tools": {"components": [
                {"type": "application", "name": "landfall", "version": env!("CARGO_PKG_VERSION")},
            ]},
            "component": {
                "type": "data", "bom-ref": root, "name": name, "version": version,
                "properties": [
                    {"name": "landfall:bundle", "value": subject.digest},
                    {"name": "landfall:lock", "value": subject.lock},
                ],
            },
        },
        "dependencies": dependencies,
        "compositions": [{
            "aggregate": if subject.is_partial { "incomplete" } else { "complete" },
            "assemblies": [root],
        }],
    });
    if let Some(time) = &subject.time {
        document["metadata"]["timestamp"] = json!(time);
    }
    document["components"] = components.into();
    document["metadata"]["component"]["hashes"] = json!([hash(subject.digest)]);
    Ok((document, all))
}

/// A UUID (RFC 9562, version 8) from the first bits of the digest. The same bundle always has the
/// same UUID.
fn serial_number(digest: &Digest) -> String {
    let hex = digest.hex();
    let variant = match u8::from_str_radix(&hex[16..17], 16).unwrap_or_default() & 3 {
        0 => '8',
        1 => '9',
        2 => 'a',
        _ => 'b',
    };
    format!(
        "urn:uuid:{}-{}-8{}-{variant}{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    )
}

// Documents that refer to an item, and their identifiers: the BOM-Link of a CycloneDX document,
// the namespace of an SPDX document, or else the location in a registry.

/// The maximum size in bytes of a document that is read. A larger document is linked by its
/// location.
const LARGEST: u64 = 32 << 20;

/// The kind of a referrer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferrerKind {
    /// A signature of the item.
    Signature,
    /// An in-toto statement, signed or not.
    Attestation,
    /// A software bill of materials.
    Sbom,
    /// A referrer of another kind.
    Other,
}

impl ReferrerKind {
    /// The word for the kind, as reports use it.
    pub fn word(self) -> &'static str {
        match self {
            ReferrerKind::Signature => "signature",
            ReferrerKind::Attestation => "attestation",
            ReferrerKind::Sbom => "SBOM",
            ReferrerKind::Other => "referrer",
        }
    }
}

/// Determines the kind of a referrer. A child of the item's index is an attestation. The kind of
/// any other referrer is recognized by its tag (in cosign's convention) or, if it has no tag, by
/// its artifact type, which is read from `blobs`.
pub fn referrer_kind(referrer: &AttachedReferrer, blobs: Option<&dyn BlobRead>) -> ReferrerKind {
    let words = referrer
        .tag
        .clone()
        .or_else(|| artifact_type(referrer, blobs?))
        .unwrap_or_default();
    // BuildKit lists its attestations in the index of the image
    if referrer.is_child {
        return ReferrerKind::Attestation;
    }
    KIND_WORDS
        .iter()
        .find(|(_, parts)| parts.iter().any(|part| words.contains(part)))
        .map_or(ReferrerKind::Other, |(kind, _)| *kind)
}

/// Parts of tags and artifact types, with the kind that they indicate. The first match wins.
const KIND_WORDS: [(ReferrerKind, &[&str]); 3] = [
    (
        ReferrerKind::Attestation,
        &[".att", "in-toto", "attestation"],
    ),
    (ReferrerKind::Sbom, &[".sbom", "spdx", "cyclonedx", "syft"]),
    (ReferrerKind::Signature, &[".sig", "signature", "sigstore"]),
];

fn artifact_type(referrer: &AttachedReferrer, blobs: &dyn BlobRead) -> Option<String> {
    let bytes = blobs.read(&referrer.descriptor).ok()?;
    let entry = read_referrer(&bytes, &referrer.descriptor)?.entry;
    Some(entry["artifactType"].as_str()?.to_owned())
}

/// A document that refers to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedDocument {
    /// The kind of the document.
    pub kind: ReferrerKind,
    /// The identifier of the document.
    pub url: String,
    /// The blob with the document.
    pub blob: Descriptor,
    /// The manifest that the document belongs to.
    pub manifest: Digest,
    /// The format that the document declares: `CycloneDX 1.5`, `SPDX-2.3`, or the type of a
    /// statement.
    pub format: Option<String>,
}

/// The documents that refer to `entry`. Documents whose manifests are not in `blobs` are omitted.
/// `repository` is the registry and repository of the entry.
pub fn linked_documents(
    entry: &LockEntry,
    repository: &str,
    blobs: &dyn BlobRead,
) -> Vec<LinkedDocument> {
    let mut all = Vec::new();
    for referrer in &entry.referrers {
        let Ok(bytes) = blobs.read(&referrer.descriptor) else {
            continue;
        };
        let Ok((Manifest::Image { layers, .. }, _)) = Manifest::parse(&bytes, None) else {
            continue;
        };
        let kind = referrer_kind(referrer, Some(blobs));
        for blob in layers {
            let is_read = blob.size <= LARGEST && kind != ReferrerKind::Signature;
            let document = is_read.then(|| blobs.read(&blob).ok()).flatten();
            let identity = document.and_then(|bytes| identify(&bytes));
            let is_sbom = identity.as_ref().is_some_and(|identity| identity.is_sbom);
            all.push(LinkedDocument {
                // the content decides: an SBOM may be attached as an attestation
                kind: if is_sbom { ReferrerKind::Sbom } else { kind },
                url: identity
                    .as_ref()
                    .and_then(|identity| identity.url.clone())
                    .unwrap_or_else(|| {
                        format!("oci://{repository}@{}", referrer.descriptor.digest)
                    }),
                format: identity.and_then(|identity| identity.format),
                manifest: referrer.descriptor.digest.clone(),
                blob,
            });
        }
    }
    // several manifests may contain the same document; after sorting, its copies are adjacent
    all.sort_by(|a, b| {
        (a.kind, &a.blob.digest, &a.manifest).cmp(&(b.kind, &b.blob.digest, &b.manifest))
    });
    all.dedup_by(|a, b| (a.kind, &a.blob.digest) == (b.kind, &b.blob.digest));
    all
}

/// Identifies `bytes` as a document.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let _ = identify(bytes);
}

/// The identity that a document declares.
struct DocumentIdentity {
    is_sbom: bool,
    url: Option<String>,
    format: Option<String>,
}

/// The members of a document, or of a statement or envelope around it, that identify it. They are
/// slices of its text: as values, all its members would take much more memory than the text.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DocumentMembers<'a> {
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    predicate_type: Option<&'a RawValue>,
    predicate: Option<&'a RawValue>,
    bom_format: Option<&'a RawValue>,
    serial_number: Option<&'a RawValue>,
    version: Option<&'a RawValue>,
    spec_version: Option<&'a RawValue>,
    spdx_version: Option<&'a RawValue>,
    document_namespace: Option<&'a RawValue>,
}

impl DocumentMembers<'_> {
    /// Reads an object.
    fn read(bytes: &[u8]) -> Option<DocumentMembers<'_>> {
        // a list would be read as the members in their order
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(bytes).ok())?
    }
}

/// The text of a member; `None` if it is not a string.
fn text(member: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(member?.get()).ok()
}

/// The identity of a document: an SBOM, or an in-toto statement, with or without an envelope.
fn identify(bytes: &[u8]) -> Option<DocumentIdentity> {
    let document = DocumentMembers::read(bytes)?;
    let Some(payload) = text(document.payload) else {
        return identity(&document);
    };
    let statement = STANDARD.decode(payload).ok()?;
    let statement = DocumentMembers::read(&statement)?;
    // nested envelopes are refused
    let is_nested = statement.payload.is_some();
    (!is_nested).then(|| identity(&statement))?
}

fn identity(document: &DocumentMembers<'_>) -> Option<DocumentIdentity> {
    let Some(kind) = text(document.predicate_type) else {
        return sbom(document);
    };
    let inner = document.predicate.map(|inner| inner.get().as_bytes());
    let inner = inner
        .and_then(DocumentMembers::read)
        .and_then(|inner| sbom(&inner));
    let is_sbom = inner.is_some() || kind.contains("spdx") || kind.contains("cyclonedx");
    Some(DocumentIdentity {
        is_sbom,
        url: inner.and_then(|inner| inner.url),
        format: Some(kind),
    })
}

fn sbom(document: &DocumentMembers<'_>) -> Option<DocumentIdentity> {
    if text(document.bom_format).as_deref() == Some("CycloneDX") {
        let serial = text(document.serial_number);
        let uuid = serial.as_deref();
        let uuid = uuid.and_then(|serial| serial.strip_prefix("urn:uuid:"));
        // it becomes part of a URL, so only the characters of a UUID are accepted
        let uuid = uuid.filter(|uuid| {
            uuid.bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        });
        let version = document.version.map(RawValue::get);
        let version: u64 = version.and_then(|text| text.parse().ok()).unwrap_or(1);
        let format = format!(
            "CycloneDX {}",
            text(document.spec_version).unwrap_or_default()
        );
        let url = uuid.map(|uuid| format!("urn:cdx:{uuid}/{version}"));
        return Some(DocumentIdentity {
            is_sbom: true,
            url,
            format: Some(format.trim_end().to_owned()),
        });
    }
    let version = text(document.spdx_version)?;
    // the document may contain any text here
    let url = text(document.document_namespace).filter(|url| url::Url::parse(url).is_ok());
    Some(DocumentIdentity {
        is_sbom: true,
        url,
        format: Some(version),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_get_the_identifiers_of_their_formats() {
        let cyclonedx = json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 3,
    "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79"});
        let spdx = json!({"spdxVersion": "SPDX-2.3", "documentNamespace": "https://q.test/app-1"});
        let statement = json!({"predicateType": "https://spdx.dev/Document", "predicate": spdx});
        let envelope = json!({"payloadType": "application/vnd.in-toto+json", "payload": STANDARD.encode(statement.to_string())});
        let url = |document: &Value| {
            let found = identify(document.to_string().as_bytes());
            found.map(|identity| (identity.is_sbom, identity.url.unwrap_or_default()))
        };
        assert_eq!(
            url(&cyclonedx).unwrap(),
            (
                true,
                "urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/3".into()
            )
        );
        for document in [&spdx, &statement, &envelope] {
            assert_eq!(
                url(document).unwrap(),
                (true, "https://q.test/app-1".into())
            );
        }
        let provenance =
            json!({"predicateType": "https://slsa.dev/provenance/v1", "predicate": {}});
        assert_eq!(url(&provenance).unwrap(), (false, String::new()));
        // hostile documents get no identifier
        let nested = json!({"payload": STANDARD.encode(envelope.to_string())});
        let bad = json!({"bomFormat": "CycloneDX", "serialNumber": "urn:uuid:../../x"});
        assert!(
            url(&nested).is_none()
                && url(&json!([1])).is_none()
                && url(&json!({"payload": "?"})).is_none()
        );
        assert_eq!(url(&bad).unwrap(), (true, String::new()));
        let local = json!({"spdxVersion": "SPDX-2.3", "documentNamespace": "not a url"});
        assert_eq!(url(&local).unwrap().1, "");
    }
}
