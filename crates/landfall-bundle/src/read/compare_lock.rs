//! Compares a bundle with its lock: it must contain all that the lock requires and nothing else,
//! and the lock must match the manifests. Only digests, sizes, media types and names are compared,
//! so that bundles of other releases, which may serialize a lock differently, pass.

use super::bundle::Bundle;
use super::entry_reader::BundleEntryReader;
use crate::error::BundleError;
use crate::format::damage::Damage;
use crate::format::names::{CONTENTS, ItemName, LAYOUT, LOCK};
use crate::plan::delta_base::kept;
use landfall_content::LockEntry;
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::sign::SignatureTime;
use landfall_model::{Digest, Limits, MediaType};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::sync::Arc;

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
    let lock = bundle.lock()?;
    let without: BTreeSet<ItemName> = bundle.partial().iter().cloned().collect();
    let held = |entry: &LockEntry| {
        !without.contains(&ItemName {
            kind: entry.kind,
            name: entry.name.clone(),
        })
    };
    let asked = asked(lock.each_entry().filter(held));
    let at_index = |why: String| Damage::new(CONTENTS, bundle.0.index.footer.offset, why);
    let mut damage = bad_omissions(bundle, lock.each_entry().filter(held), &asked);
    let mut found: HashSet<&Digest> = bundle.omitted().iter().map(|blob| &blob.digest).collect();
    for entry in bundle
        .contents()
        .entries
        .iter()
        .filter(|entry| entry.is_blob())
    {
        found.insert(&entry.digest);
        let why = match asked.get(&entry.digest) {
            None => "the lock does not ask for it",
            Some(asked) if asked.size != entry.size => "it is not what the lock asks for",
            Some(asked) if !asked.media_types.contains(&entry.media_type) => {
                "its media type is not one that the lock gives it"
            }
            Some(_) => continue,
        };
        damage.push(Damage::new(&entry.name, entry.offset, why));
    }
    let mut absent: Vec<_> = asked
        .iter()
        .filter(|(digest, _)| !found.contains(digest))
        .collect();
    absent.sort_by(|a, b| a.0.cmp(b.0));
    damage.extend(absent.into_iter().map(|(digest, asked)| {
        at_index(format!(
            "{} is not there, which {} needs",
            digest.layout_path(),
            asked.item
        ))
    }));
    damage.extend(bad_layout(bundle, lock.each_entry().filter(held)));
    if damage.is_empty() {
        damage = lock_against_manifests(bundle, &lock, &without);
    }
    let named = |kind, name: String| ItemName { kind, name };
    let unresolved: BTreeSet<ItemName> = lock
        .unresolved
        .iter()
        .map(|item| named(item.kind, item.name.clone()))
        .collect();
    let known: BTreeSet<ItemName> = lock
        .each_entry()
        .map(|entry| named(entry.kind, entry.name))
        .chain(
            lock.missing
                .iter()
                .map(|item| named(item.kind, item.name.clone())),
        )
        .chain(unresolved.iter().cloned())
        .collect();
    let mut partial = |items: &mut dyn Iterator<Item = &ItemName>, why: &str| {
        damage.extend(items.map(|item| at_index(format!("{} {} {why}", item.kind, item.name))));
    };
    partial(
        &mut without.difference(&known),
        "is named as left out, and is not in the lock",
    );
    partial(
        &mut unresolved.difference(&without),
        "is not resolved in the lock, and not named as left out",
    );
    Ok(damage)
}

/// All blobs of these entries.
fn asked(entries: impl Iterator<Item = LockEntry>) -> HashMap<Digest, ExpectedBlob> {
    let mut asked: HashMap<Digest, ExpectedBlob> = HashMap::new();
    for LockEntry { name, parts, .. } in entries {
        for part in parts {
            let new = || ExpectedBlob {
                size: part.descriptor.size,
                media_types: BTreeSet::new(),
                item: name.clone(),
            };
            let blob = asked.entry(part.descriptor.digest).or_insert_with(new);
            blob.media_types.insert(part.descriptor.media_type);
        }
    }
    asked
}

/// Checks the two files that make the tar an OCI image layout: `index.json` must name each item
/// once, with the digest of its manifest, and nothing else.
fn bad_layout(bundle: &Bundle, entries: impl Iterator<Item = LockEntry>) -> Vec<Damage> {
    let [layout, index] = LAYOUT.map(|name| document(bundle, name));
    let mut expected: Vec<_> = entries
        .map(|entry| Some((entry.layout_name, entry.top.digest.to_string())))
        .collect();
    let named = |child: &Value| {
        let name = child["annotations"]["org.opencontainers.image.ref.name"].as_str()?;
        Some((name.to_owned(), child["digest"].as_str()?.to_owned()))
    };
    let mut found: Vec<_> = index["manifests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(named)
        .collect();
    found.sort();
    expected.sort();
    let checks = [
        (LAYOUT[0], layout["imageLayoutVersion"] == "1.0.0"),
        (LAYOUT[1], found == expected),
    ];
    let entries = &bundle.contents().entries;
    let wrong = checks.into_iter().filter(|(_, is_right)| !is_right);
    let damage = wrong.map(|(name, _)| {
        let at = entries
            .iter()
            .find(|entry| entry.name == name)
            .map_or(0, |entry| entry.offset);
        Damage::new(name, at, "it is not what the lock asks for")
    });
    damage.collect()
}

/// The JSON document in an entry; null if it cannot be read.
fn document(bundle: &Bundle, name: &str) -> Value {
    let place = bundle
        .contents()
        .entries
        .iter()
        .position(|entry| entry.name == name);
    let read = |place| {
        let limit = Limits::default().contents_bytes as u64;
        let mut bytes = Vec::new();
        BundleEntryReader::new(Arc::clone(&bundle.0), place, 0)
            .take(limit)
            .read_to_end(&mut bytes)
            .ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    place.and_then(read).unwrap_or_default()
}

/// The contradictions between the lock and the content of its items.
fn lock_against_manifests(
    bundle: &Bundle,
    lock: &Lock,
    without: &BTreeSet<ItemName>,
) -> Vec<Damage> {
    let contents = bundle.contents();
    let at = contents
        .lock_place()
        .map_or(0, |place| contents.entries[place].offset);
    let name = |item: &dyn LockedItem| ItemName {
        kind: item.kind(),
        name: item.name().into_owned(),
    };
    let held = lock.items().filter(|item| !without.contains(&name(*item)));
    let damage = held.flat_map(|item| {
        let contradictions = item.contradictions(bundle, SignatureTime::Made).into_iter();
        contradictions.map(move |why| Damage::new(LOCK, at, format!("{}: {why}", item.name())))
    });
    damage.collect()
}

/// Checks the omitted blobs of a delta: `entries` must require them, and they must be layers or
/// files.
fn bad_omissions(
    bundle: &Bundle,
    entries: impl Iterator<Item = LockEntry>,
    asked: &HashMap<Digest, ExpectedBlob>,
) -> Vec<Damage> {
    if bundle.omitted().is_empty() {
        return Vec::new();
    }
    let (mut all_kept, mut wrong) = (HashSet::new(), Vec::new());
    for entry in entries {
        match kept(&entry, bundle) {
            Ok(kept) => all_kept.extend(kept),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    for blob in bundle.omitted() {
        let is_asked = asked.get(&blob.digest).is_some_and(|asked| {
            asked.size == blob.size && asked.media_types.contains(&blob.media_type)
        });
        if !is_asked {
            wrong.push(format!(
                "it leaves out {}, and the lock does not ask for this",
                blob.digest
            ));
        } else if all_kept.contains(&blob.digest) {
            wrong.push(format!(
                "it leaves out {}, and only layers and files may be left out",
                blob.digest
            ));
        }
    }
    wrong
        .into_iter()
        .map(|why| Damage::new(CONTENTS, bundle.0.index.footer.offset, why))
        .collect()
}
