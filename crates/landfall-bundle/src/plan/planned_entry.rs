//! The entries of a planned bundle, and the source of their content.

use crate::format::content_form::ContentForm;
use crate::format::stored::CHUNK;
use crate::recipe::make::RecipeFile;
use landfall_content::{LockEntry, PartOrigin};
use landfall_model::{Descriptor, Digest};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An entry to write to the tar.
#[derive(Debug)]
pub struct PlannedEntry {
    pub name: String,
    pub descriptor: Descriptor,
    pub form: ContentForm,
    pub content: ContentSource,
    /// The first item that needs the entry.
    pub item: String,
}

impl PlannedEntry {
    /// The number of frames of its content.
    pub fn chunks(&self) -> usize {
        self.descriptor.size.div_ceil(CHUNK as u64) as usize
    }
}

/// The source of an entry's content.
#[derive(Debug)]
pub enum ContentSource {
    /// The content, computed from the lock.
    Bytes(Vec<u8>),
    /// The blob with the entry's digest in the store.
    Store,
    /// The recipe in this file.
    Recipe(Arc<RecipeFile>),
    /// The index `of` in the store, reduced to the manifests in `keep`.
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
        | PartOrigin::Urls(_)
        | PartOrigin::Git { .. }
        | PartOrigin::LargeFile(_) => ContentSource::Store,
    }
}

/// One of the entries before the blobs. Its content is computed from the lock.
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
        // stored, so that the offsets of the blobs after it do not depend on compression
        form: ContentForm::Stored,
        content: ContentSource::Bytes(bytes),
        item,
    }
}

/// Every blob once, in the order in which the items first need them. A blob that several parts
/// share has the form `Stored` if one of the parts requires it. It has the alphabetically first of
/// their media types, so that the result does not depend on the order of the parts.
pub(super) fn blob_entries(items: impl Iterator<Item = LockEntry>) -> Vec<PlannedEntry> {
    let mut entries: Vec<PlannedEntry> = Vec::new();
    let mut entry_indexes: BTreeMap<Digest, usize> = BTreeMap::new();
    let parts = items.flat_map(|LockEntry { name, parts, .. }| {
        parts.into_iter().map(move |part| (name.clone(), part))
    });
    for (item, part) in parts {
        let form = ContentForm::of(&part.descriptor.media_type, part.origin.url());
        if let Some(&entry_index) = entry_indexes.get(&part.descriptor.digest) {
            let entry = &mut entries[entry_index];
            // content that is compressed already would not become smaller
            if form == ContentForm::Stored {
                entry.form = form;
            }
            if part.descriptor.media_type < entry.descriptor.media_type {
                entry
                    .descriptor
                    .media_type
                    .clone_from(&part.descriptor.media_type);
            }
            // if another part computes the same blob, it need not be read from the store
            if matches!(entry.content, ContentSource::Store) {
                entry.content = content(&part.origin);
            }
            continue;
        }
        entry_indexes.insert(part.descriptor.digest.clone(), entries.len());
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
