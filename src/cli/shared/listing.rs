//! How lock entries are listed: as report items, as a table, as a count.

use landfall_bundle::sbom::referrer_kind;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::item_kinds;
use landfall_item::lockfile::Lock;
use landfall_model::human_size;
use landfall_model::report::{EntryCount, EntryKind, ReportItem, one_line};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// `3 images and 1 file`.
pub(crate) fn count(items: &[ReportItem]) -> String {
    let counts = item_kinds()
        .map(|kind| EntryCount::from_items(kind, items))
        .enumerate();
    // the first two are named even where there is none
    let shown = counts.filter(|(at, count)| *at < 2 || count.entries > 0);
    let shown: Vec<String> = shown.map(|(_, count)| count.to_string()).collect();
    let (last, others) = shown
        .split_last()
        .map_or(("", &[][..]), |(last, others)| (last, others));
    format!("{} and {last}", others.join(", "))
}

/// Size in bytes of everything under the entries, each digest once.
pub(crate) fn unique_bytes(entries: &[LockEntry]) -> u64 {
    let parts = entries.iter().flat_map(|entry| &entry.parts);
    let unique: BTreeMap<_, _> = parts
        .map(|part| (&part.descriptor.digest, part.descriptor.size))
        .collect();
    unique.values().sum()
}

/// One line an item: kind, name, short digest, size.
pub(crate) fn table(items: &[ReportItem]) -> String {
    items.iter().map(|item| line(item, "")).collect()
}

/// As [`table`], with its platforms or the number of its packages at the end.
pub(crate) fn line(item: &ReportItem, about: &str) -> String {
    let digest = item
        .digest
        .as_ref()
        .map(|digest| digest.short(12))
        .unwrap_or_default();
    let size = human_size(item.bytes.unwrap_or_default());
    let line = format!(
        "{:<6} {digest}  {size:>8}  {}  {}",
        item.kind.to_string(),
        one_line(&item.name),
        one_line(about)
    );
    format!("{}\n", line.trim_end())
}

/// One indented line each.
pub(crate) fn lines(of: &[impl Display]) -> String {
    of.iter()
        .map(|one| format!("  {}\n", one_line(&one.to_string())))
        .collect()
}

/// The platforms of each item that has some, by its name.
pub(crate) fn platforms(lock: &Lock) -> BTreeMap<String, BTreeSet<String>> {
    lock.items()
        .filter_map(|item| Some((item.name().into_owned(), item.platforms()?)))
        .collect()
}

/// The kinds of items that a lock holds, for messages such as `3 images, 2 files`.
pub(crate) fn count_kinds<'a>(items: impl IntoIterator<Item = &'a ReportItem>) -> String {
    let items: Vec<&ReportItem> = items.into_iter().collect();
    let kinds: BTreeSet<EntryKind> = items.iter().map(|item| item.kind).collect();
    let words: Vec<String> = kinds
        .into_iter()
        .map(|kind| EntryCount::from_items(kind, items.iter().copied()).to_string())
        .collect();
    if words.is_empty() {
        "nothing".into()
    } else {
        words.join(", ")
    }
}

/// The number of manifests that refer to `entry`, by what they are, such as signature or SBOM. A
/// manifest that is linked by a tag alone tells its type only in its content, which `blobs` has.
pub(crate) fn referrer_counts(
    entry: &LockEntry,
    blobs: Option<&dyn BlobRead>,
) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for referrer in &entry.referrers {
        *counts
            .entry(referrer_kind(referrer, blobs).word())
            .or_default() += 1;
    }
    counts
}
