//! Compares a bundle with its lock: the bundle must contain all that the lock requires and nothing
//! else, and the lock must match the manifests. Only digests, sizes, media types and names are
//! compared, since other releases may serialize the same lock differently.

use super::Bundle;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::names::{CONTENTS, ItemName, LAYOUT, LOCK};
use crate::plan::delta_base::kept;
use crate::plan::{is_included, without_lost_referrers};
use landfall_content::LockEntry;
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Descriptor, Digest, Limits, MediaType};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;

/// A blob that the lock requires.
struct ExpectedBlob {
    size: u64,
    /// The media types of the blob in the lock.
    media_types: BTreeSet<MediaType>,
    /// The first item that needs the blob.
    item: String,
}

/// The differences between the bundle and its lock: missing, surplus and different entries.
pub(super) fn against_lock(bundle: &Bundle) -> Result<Vec<Damage>, BundleError> {
    let whole = bundle.lock()?;
    let without: BTreeSet<ItemName> = bundle.partial().iter().cloned().collect();
    let lock = without_lost_referrers(&whole, &without);
    let index_at = bundle.0.index.footer.offset;
    let required = required_blobs(included(&lock, &without));
    let mut damage = bad_omissions(bundle, included(&lock, &without), &required);
    let mut found: HashSet<&Digest> = not_contained(bundle).map(|blob| &blob.digest).collect();
    for entry in bundle
        .contents()
        .entries
        .iter()
        .filter(|entry| entry.is_blob())
    {
        found.insert(&entry.digest);
        let why = match required.get(&entry.digest) {
            None => "the lock does not list it",
            Some(blob) if blob.size != entry.size => "its size is not the one in the lock",
            Some(blob) if !blob.media_types.contains(&entry.media_type) => {
                "its media type is not the one in the lock"
            }
            Some(_) => continue,
        };
        damage.push(Damage::new(&entry.name, entry.offset, why));
    }
    let mut absent: Vec<_> = required
        .iter()
        .filter(|(digest, _)| !found.contains(digest))
        .collect();
    // the map has no order, and the report must be the same in every run
    absent.sort_by(|a, b| a.0.cmp(b.0));
    damage.extend(absent.into_iter().map(|(digest, blob)| {
        let why = format!(
            "{} is missing, and {} needs it",
            digest.layout_path(),
            blob.item
        );
        Damage::new(CONTENTS, index_at, why)
    }));
    damage.extend(bad_layout(bundle, included(&lock, &without)));
    // only if the blobs match, because this check reads their content
    if damage.is_empty() {
        damage = lock_against_manifests(bundle, &lock, &without);
    }
    damage.extend(bad_partial_list(&whole, &without, index_at));
    Ok(damage)
}

/// The entries of the lock without the items in `without`.
fn included(lock: &Lock, without: &BTreeSet<ItemName>) -> impl Iterator<Item = LockEntry> {
    lock.each_entry()
        .filter(|entry| is_included(entry, without))
}

/// Compares the index's list of missing items with the lock.
fn bad_partial_list(lock: &Lock, without: &BTreeSet<ItemName>, index_at: u64) -> Vec<Damage> {
    let unresolved: BTreeSet<ItemName> = lock
        .unresolved
        .iter()
        .map(|item| ItemName::new(item.kind, &item.name))
        .collect();
    let entries = lock.each_entry();
    let entries = entries.map(|entry| ItemName::new(entry.kind, entry.name));
    let accepted = lock.missing.iter();
    let accepted = accepted.map(|item| ItemName::new(item.kind, &item.name));
    let referrers = lock.each_entry().flat_map(referrer_parts);
    let known: BTreeSet<ItemName> = entries
        .chain(referrers)
        .chain(accepted)
        .chain(unresolved.iter().cloned())
        .collect();
    let unknown = without
        .difference(&known)
        .map(|item| (item, "is listed as missing, but is not in the lock"));
    let hidden = unresolved.difference(without).map(|item| {
        let why = "is unresolved in the lock, but not listed as missing";
        (item, why)
    });
    unknown
        .chain(hidden)
        .map(|(item, why)| {
            Damage::new(
                CONTENTS,
                index_at,
                format!("{} {} {why}", item.kind, item.name),
            )
        })
        .collect()
}

/// The manifests and blobs that may belong to referrers of `entry`, by the names that a list of
/// missing items gives them.
fn referrer_parts(entry: LockEntry) -> Vec<ItemName> {
    // parts of an image may belong to attestations that its index lists; whether they do is checked
    // with its manifests
    let parts = entry.parts.iter().filter(|part| {
        let digest = &part.descriptor.digest;
        entry.is_of_referrers(digest)
            || (entry.kind == EntryKind::Image && *digest != entry.top.digest)
    });
    parts
        .map(|part| ItemName::of_referrer(&entry.name, &part.descriptor.digest))
        .collect()
}

/// All blobs of these entries.
fn required_blobs(entries: impl Iterator<Item = LockEntry>) -> HashMap<Digest, ExpectedBlob> {
    let mut required: HashMap<Digest, ExpectedBlob> = HashMap::new();
    for LockEntry { name, parts, .. } in entries {
        for part in parts {
            let blob = required
                .entry(part.descriptor.digest)
                .or_insert_with(|| ExpectedBlob {
                    size: part.descriptor.size,
                    // items may give the same blob different media types
                    media_types: BTreeSet::new(),
                    item: name.clone(),
                });
            blob.media_types.insert(part.descriptor.media_type);
        }
    }
    required
}

/// Checks the two files that make the tar an OCI image layout: `index.json` must name each item
/// once, with the digest of its manifest, and nothing else.
fn bad_layout(bundle: &Bundle, entries: impl Iterator<Item = LockEntry>) -> Vec<Damage> {
    let [layout, index] = LAYOUT.map(|name| document(bundle, name));
    let mut expected: Vec<_> = entries
        .map(|entry| Some((entry.layout_name, entry.top.digest.to_string())))
        .collect();
    let mut found: Vec<_> = index["manifests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|child| {
            let name = child["annotations"]["org.opencontainers.image.ref.name"].as_str()?;
            Some((name.to_owned(), child["digest"].as_str()?.to_owned()))
        })
        .collect();
    found.sort();
    expected.sort();
    let checks = [
        (
            LAYOUT[0],
            layout["imageLayoutVersion"] == "1.0.0",
            "its imageLayoutVersion is not 1.0.0",
        ),
        (LAYOUT[1], found == expected, "it does not match the lock"),
    ];
    let entries = &bundle.contents().entries;
    let wrong = checks.into_iter().filter(|(_, is_right, _)| !is_right);
    let damage = wrong.map(|(name, _, why)| {
        let at = entries
            .iter()
            .find(|entry| entry.name == name)
            .map_or(0, |entry| entry.offset);
        Damage::new(name, at, why)
    });
    damage.collect()
}

/// The JSON document in an entry; null if it cannot be read.
fn document(bundle: &Bundle, name: &str) -> Value {
    read_document(bundle, name).unwrap_or_default()
}

fn read_document(bundle: &Bundle, name: &str) -> Option<Value> {
    let entry_index = bundle
        .contents()
        .entries
        .iter()
        .position(|entry| entry.name == name)?;
    let limit = Limits::default().contents_bytes as u64;
    let mut bytes = Vec::new();
    bundle
        .open_entry(entry_index, 0)
        .take(limit)
        .read_to_end(&mut bytes)
        .ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The contradictions between the lock and the content of its items.
fn lock_against_manifests(
    bundle: &Bundle,
    lock: &Lock,
    without: &BTreeSet<ItemName>,
) -> Vec<Damage> {
    let contents = bundle.contents();
    // all contradictions are reported at the lock, which is the part that does not match
    let at = contents
        .lock_index()
        .map_or(0, |entry_index| contents.entries[entry_index].offset);
    let included = lock
        .items()
        .filter(|item| !without.contains(&ItemName::new(item.kind(), item.name())));
    let damage = included.flat_map(|item| {
        let contradictions = item.contradictions(bundle, SignatureTime::Made).into_iter();
        contradictions.map(move |why| Damage::new(LOCK, at, format!("{}: {why}", item.name())))
    });
    damage.collect()
}

/// The blobs that the bundle omits, or has only recipes for.
fn not_contained(bundle: &Bundle) -> impl Iterator<Item = &Descriptor> {
    let rebuilt = bundle.contents().recipes.iter().map(|recipe| &recipe.blob);
    bundle.omitted().iter().chain(rebuilt)
}

/// Checks the blobs that a bundle omits or has recipes for: `entries` must require them, and a
/// delta must be allowed to omit them (see [`kept`]).
fn bad_omissions(
    bundle: &Bundle,
    entries: impl Iterator<Item = LockEntry>,
    required: &HashMap<Digest, ExpectedBlob>,
) -> Vec<Damage> {
    if not_contained(bundle).next().is_none() {
        return Vec::new();
    }
    let mut all_kept = HashSet::new();
    let mut wrong = Vec::new();
    for entry in entries {
        // the same rule as for packing, applied to the manifests that the delta contains
        match kept(&entry, bundle) {
            Ok(kept) => all_kept.extend(kept),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    for blob in not_contained(bundle) {
        let is_required = required.get(&blob.digest).is_some_and(|required| {
            required.size == blob.size && required.media_types.contains(&blob.media_type)
        });
        if !is_required {
            wrong.push(format!(
                "it omits {}, which the lock does not list with this size and media type",
                blob.digest
            ));
        } else if all_kept.contains(&blob.digest) {
            wrong.push(format!(
                "it omits {}, which every delta must contain",
                blob.digest
            ));
        }
    }
    wrong
        .into_iter()
        .map(|why| Damage::new(CONTENTS, bundle.0.index.footer.offset, why))
        .collect()
}
