//! How lock entries are listed: as report items, as a table, as a count.

use crate::content::Entry;
use crate::lockfile::Lock;
use crate::model::{Platform, human_size};
use crate::report::{Item, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// `1 blob`, `2 blobs`.
pub(crate) fn count_of(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `3 images and 1 file`.
pub(crate) fn count(items: &[Item]) -> String {
    let counted = |kind: Kind| {
        let count = items.iter().filter(|item| item.kind == kind).count();
        count_of(count, &kind.to_string())
    };
    format!("{} and {}", counted(Kind::Image), counted(Kind::File))
}

/// Size in bytes of everything under the entries, each digest once.
pub(crate) fn unique_bytes(entries: &[Entry]) -> u64 {
    let parts = entries.iter().flat_map(|entry| &entry.parts);
    let unique: BTreeMap<_, _> = parts.map(|part| (&part.descriptor.digest, part.descriptor.size)).collect();
    unique.values().sum()
}

/// One line an item: kind, name, short digest, size.
pub(crate) fn table(items: &[Item]) -> String {
    items.iter().map(|item| line(item, "")).collect()
}

/// As [`table`], with the platforms at the end.
pub(crate) fn line(item: &Item, platforms: &str) -> String {
    let digest = item.digest.as_ref().map(|digest| digest.short(12)).unwrap_or_default();
    let size = human_size(item.bytes.unwrap_or_default());
    let line = format!("{:<6} {digest}  {size:>8}  {}  {platforms}", item.kind.to_string(), item.name);
    format!("{}\n", line.trim_end())
}

/// One indented line each.
pub(crate) fn lines(of: &[impl Display]) -> String {
    of.iter().map(|one| format!("  {one}\n")).collect()
}

/// The platforms of each image, by its name.
pub(crate) fn platforms(lock: &Lock) -> BTreeMap<String, BTreeSet<String>> {
    let of = |image: &crate::lockfile::Image| {
        let below = image.manifests.iter().filter_map(|manifest| manifest.platform.clone());
        let own = image.platform.as_ref().map(Platform::to_string);
        below.chain(own).filter(|platform| !platform.starts_with("unknown")).collect()
    };
    lock.images.iter().map(|image| (image.name.to_string(), of(image))).collect()
}
