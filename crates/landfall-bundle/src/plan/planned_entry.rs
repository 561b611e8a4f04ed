//! The entries of a bundle that is to be written, and where the content of each comes from.

use crate::format::form::Form;
use crate::format::stored::CHUNK;
use landfall_content::{LockEntry, PartOrigin};
use landfall_model::{Descriptor, Digest};
use std::collections::{BTreeMap, BTreeSet};

/// One entry of the tar that is to be written.
#[derive(Debug)]
pub struct PlannedEntry {
    pub name: String,
    pub descriptor: Descriptor,
    pub form: Form,
    pub content: ContentSource,
    /// The item that it is for, or the first of several.
    pub item: String,
}

impl PlannedEntry {
    /// How many frames its content takes.
    pub fn chunks(&self) -> usize {
        self.descriptor.size.div_ceil(CHUNK as u64) as usize
    }
}

/// Where the content of an entry comes from.
#[derive(Debug)]
pub enum ContentSource {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The store, by its digest.
    Store,
    /// The index `of` in the store, less the manifests that are not in `keep`.
    Trimmed {
        of: Descriptor,
        keep: BTreeSet<Digest>,
    },
}

fn content(origin: &PartOrigin) -> ContentSource {
    match origin {
        PartOrigin::Computed(bytes) => ContentSource::Bytes(bytes.clone()),
        PartOrigin::Trimmed { of, keep } => ContentSource::Trimmed {
            of: of.clone(),
            keep: keep.clone(),
        },
        PartOrigin::Manifest { .. }
        | PartOrigin::Blob { .. }
        | PartOrigin::Foreign { .. }
        | PartOrigin::Url(_)
        | PartOrigin::Urls(_) => ContentSource::Store,
    }
}

/// An entry before the blobs, whose content follows from the lock.
pub(super) fn front_entry(name: &str, kind: &str, bytes: Vec<u8>) -> PlannedEntry {
    let descriptor = Descriptor {
        digest: Digest::sha256(&bytes),
        size: bytes.len() as u64,
        media_type: kind.into(),
    };
    let (name, item) = (name.to_owned(), name.to_owned());
    PlannedEntry {
        name,
        descriptor,
        form: Form::Stored,
        content: ContentSource::Bytes(bytes),
        item,
    }
}

/// Every blob once, in the order in which the items first need them. Where several parts are one
/// blob, it is stored if one of them says so, and has the first of their media types by name.
pub(super) fn blob_entries(items: impl Iterator<Item = LockEntry>) -> Vec<PlannedEntry> {
    let mut entries: Vec<PlannedEntry> = Vec::new();
    let mut places: BTreeMap<Digest, usize> = BTreeMap::new();
    let named =
        |LockEntry { name, parts, .. }| parts.into_iter().map(move |part| (name.clone(), part));
    for (item, part) in items.flat_map(named) {
        let form = Form::of(&part.descriptor.media_type, part.origin.url());
        if let Some(&place) = places.get(&part.descriptor.digest) {
            let entry = &mut entries[place];
            if form == Form::Stored {
                entry.form = form;
            }
            if part.descriptor.media_type < entry.descriptor.media_type {
                entry
                    .descriptor
                    .media_type
                    .clone_from(&part.descriptor.media_type);
            }
            if matches!(entry.content, ContentSource::Store) {
                entry.content = content(&part.origin);
            }
            continue;
        }
        places.insert(part.descriptor.digest.clone(), entries.len());
        entries.push(PlannedEntry {
            name: part.descriptor.digest.layout_path(),
            descriptor: part.descriptor,
            form,
            content: content(&part.origin),
            item,
        });
    }
    entries
}
