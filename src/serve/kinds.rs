//! What the server and `export files` need to know of an item of each kind. Nothing else in this folder tells
//! kinds apart.

use super::repository::by_host;
use crate::content::Entry;
use crate::item;
use crate::lockfile::Lock;
use crate::model::Digest;
use crate::model::{Mapping, file_repository, file_tag};
use crate::report::Kind;

/// The kinds in the order in which the page shows them.
pub(super) const KINDS: [Kind; 2] = [Kind::Image, Kind::File];

/// An item with the names under which it is served.
pub(super) struct ServedItem<'a> {
    pub(super) entry: Entry,
    /// The repositories that hold it; the first is its destination by the mapping.
    pub(super) repositories: Vec<String>,
    /// Its tag in each of them.
    pub(super) tag: String,
    /// Its repository at the source, for the tags of its referrers.
    pub(super) source: String,
    /// The URLs by which `/files/` serves it, each with its content.
    pub(super) urls: Vec<(&'a str, &'a Digest)>,
}

/// The items of `lock`, in its order.
pub(super) fn served_items<'a>(lock: &'a Lock, mapping: &Mapping) -> Vec<ServedItem<'a>> {
    let mut entries = item::entries(lock).into_iter();
    let images = lock.images.iter().zip(entries.by_ref()).map(|(image, entry)| {
        let mapped = mapping.image(&image.name).into_iter().map(|destination| destination.repository);
        let by_host = by_host(&image.name.registry, &image.name.repository);
        ServedItem {
            entry,
            repositories: mapped.chain([by_host]).collect(),
            tag: image.destination_tag(),
            source: image.name.name(),
            urls: Vec::new(),
        }
    });
    let mut items: Vec<ServedItem> = images.collect();
    items.extend(lock.files.iter().zip(entries).map(|(file, entry)| {
        let also = file.also.iter().map(|url| (url.as_str(), &file.digest));
        let sidecars = file.sidecars.iter().map(|sidecar| (sidecar.url.as_str(), &sidecar.digest));
        ServedItem {
            entry,
            repositories: vec![mapping.file(&file.name).repository, file_repository(&file.name)],
            tag: file_tag(&file.digest),
            source: file.name.clone(),
            urls: std::iter::once((file.name.as_str(), &file.digest)).chain(also).chain(sidecars).collect(),
        }
    }));
    items
}

/// One plain file that an item becomes in a folder.
pub(super) struct PlainFile<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) digest: &'a Digest,
    pub(super) size: u64,
    /// Permission bits as locked, octal.
    pub(super) mode: Option<&'a str>,
    /// The URLs whose paths the file gets.
    pub(super) urls: Vec<&'a str>,
}

/// The plain files of `lock`, in its order.
pub(super) fn plain_files(lock: &Lock) -> Vec<PlainFile<'_>> {
    let mut files = Vec::new();
    for file in &lock.files {
        files.push(PlainFile {
            kind: Kind::File,
            name: &file.name,
            digest: &file.digest,
            size: file.size,
            mode: file.mode.as_deref(),
            urls: std::iter::once(&file.name).chain(&file.also).map(String::as_str).collect(),
        });
        files.extend(file.sidecars.iter().map(|sidecar| PlainFile {
            kind: Kind::Sidecar,
            name: &sidecar.url,
            digest: &sidecar.digest,
            size: sidecar.size,
            mode: None,
            urls: vec![&sidecar.url],
        }));
    }
    files
}
