//! Lists of items: tables and counts.

use landfall_bundle::sbom::referrer_kind;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::item_kinds;
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryCount, EntryKind, ReportItem, markdown_code, one_line};
use landfall_model::{Digest, human_size, sum_sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The number of items of each kind, as in `3 images and 1 file`.
pub(crate) fn count(items: &[ReportItem]) -> String {
    let counts = item_kinds()
        .map(|kind| EntryCount::from_items(kind, items))
        .enumerate();
    // Images and files are counted even if there are none, so that the line always has them.
    let shown = counts.filter(|(at, count)| *at < 2 || count.entries > 0);
    let shown: Vec<String> = shown.map(|(_, count)| count.to_string()).collect();
    let (last, others) = shown
        .split_last()
        .map_or(("", &[][..]), |(last, others)| (last, others));
    format!("{} and {last}", others.join(", "))
}

/// The total size in bytes of the blobs of the entries. Each blob is counted once.
pub(crate) fn unique_bytes(entries: &[LockEntry]) -> u64 {
    let parts = entries.iter().flat_map(|entry| &entry.parts);
    let unique: BTreeMap<_, _> = parts
        .map(|part| (&part.descriptor.digest, part.descriptor.size))
        .collect();
    sum_sizes(unique.into_values())
}

/// One line per item: kind, short digest, size, name.
pub(crate) fn table(items: &[ReportItem]) -> String {
    items.iter().map(|item| line(item, "")).collect()
}

/// The line of an item. `about` is the end of the line: the platforms of the item, or the number of
/// its packages.
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

/// The first characters of `digest` as Markdown code; empty for `None`.
pub(crate) fn markdown_digest(digest: Option<&Digest>) -> String {
    digest
        .map(|digest| markdown_code(&digest.short(12)))
        .unwrap_or_default()
}

/// One indented line for each of `values`.
pub(crate) fn lines(values: &[impl Display]) -> String {
    values
        .iter()
        .map(|value| format!("  {}\n", one_line(&value.to_string())))
        .collect()
}

/// The platforms of the items that have platforms, by the name of the item.
pub(crate) fn platforms(lock: &Lock) -> BTreeMap<String, BTreeSet<String>> {
    lock.items()
        .filter_map(|item| Some((item.name().into_owned(), item.platforms()?)))
        .collect()
}

/// The number of items of each kind, as in `3 images, 2 files`.
pub(crate) fn count_kinds<'a>(items: impl IntoIterator<Item = &'a ReportItem>) -> String {
    let items: Vec<&ReportItem> = items.into_iter().collect();
    describe_kinds(&items, |kind| {
        EntryCount::from_items(kind, items.iter().copied()).to_string()
    })
}

/// The description of each kind of item in `items`, separated by commas, or `nothing`.
pub(crate) fn describe_kinds(
    items: &[&ReportItem],
    describe: impl Fn(EntryKind) -> String,
) -> String {
    let kinds: BTreeSet<EntryKind> = items.iter().map(|item| item.kind).collect();
    if kinds.is_empty() {
        return "nothing".into();
    }
    let words: Vec<String> = kinds.into_iter().map(describe).collect();
    words.join(", ")
}

/// The number of manifests that refer to `entry`, by their kinds, such as signature or SBOM. If a
/// manifest is linked only by a tag, its kind is read from its content in `blobs`.
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
