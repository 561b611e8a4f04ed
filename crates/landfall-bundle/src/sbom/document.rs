//! The CycloneDX document of a bundle. The same bundle, time and release of landfall give the same
//! document.

use super::component::{ItemFacts, component, hash};
use super::linked_documents::{LinkedDocument, linked_documents};
use super::package::{package_component, package_ref};
use landfall_content::{BlobRead, LockEntry};
use landfall_item::DescribeError;
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{Digest, Limits};
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
) -> Result<(Value, BTreeMap<String, Vec<LinkedDocument>>), DescribeError> {
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
