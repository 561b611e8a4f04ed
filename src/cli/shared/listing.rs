//! Lists of items: tables and counts.

use super::package_changes::package_lines;
use crate::lock::{EndpointChange, LockChange};
use landfall_bundle::sbom::referrer_kind;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::item_kinds;
use landfall_item::lockfile::Lock;
use landfall_model::report::{
    EntryCount, EntryKind, ReportItem, RunTotals, markdown_code, one_line,
};
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
    sum_sizes(unique(entries).into_values())
}

/// The blobs of the entries, each once, with its size.
pub(crate) fn unique(entries: &[LockEntry]) -> BTreeMap<&Digest, u64> {
    let parts = entries.iter().flat_map(|entry| &entry.parts);
    parts
        .map(|part| (&part.descriptor.digest, part.descriptor.size))
        .collect()
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

/// The text with these lines. Line breaks within a line are removed.
pub(crate) fn text_of(lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    lines
        .into_iter()
        .map(|line| one_line(line.as_ref()) + "\n")
        .collect()
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

// Lines about changes, and parts of the closing line of a verb.

/// The line about a change.
pub(crate) fn change_line(change: &LockChange) -> String {
    let name = one_line(&change.name);
    let new = change.new_referrers.len();
    let gone = change.gone_referrers.len();
    match change.change {
        "changed" if new + gone > 0 => {
            format!("changed  {name} (referrers: {new} new, {gone} gone)")
        }
        "moved" => format!(
            "moved    {name} {} -> {}",
            short_digest(change.from.as_ref()),
            short_digest(change.to.as_ref())
        ),
        other => format!("{other:8} {name}"),
    }
}

fn short_digest(digest: Option<&landfall_model::Digest>) -> String {
    digest.map_or(String::new(), |d| d.short(12))
}

/// The lines about a change and its packages.
pub(crate) fn change_lines(change: &LockChange) -> impl Iterator<Item = String> {
    std::iter::once(change_line(change)).chain(package_lines(change))
}

/// The line about a changed endpoint.
pub(crate) fn endpoint_line(change: &EndpointChange) -> String {
    format!(
        "{:8} endpoint {}: {}",
        change.change,
        change.endpoint,
        one_line(&change.endpoint.why)
    )
}

/// The number of successful items of each kind. If it is not the number of all items of the kind,
/// both are given, as in `6 of 10 images, 1 file`.
pub(crate) fn success_counts(items: &[ReportItem]) -> String {
    let is_good = |item: &&ReportItem| item.status.is_success();
    describe_kinds(&items.iter().collect::<Vec<_>>(), |kind| {
        let all = EntryCount::from_items(kind, items);
        match EntryCount::from_items(kind, items.iter().filter(is_good)).entries {
            good if good == all.entries => all.to_string(),
            // The packages of a failed set may be unknown, so none are counted.
            good => format!("{good} of {}", EntryCount { packages: 0, ..all }),
        }
    })
}

/// `, 2 failed, 1 missing`; empty if nothing failed or is missing.
pub(crate) fn failure_counts(totals: &RunTotals) -> String {
    let counts = [(totals.failed, "failed"), (totals.missing, "missing")];
    let nonzero = counts.into_iter().filter(|(count, _)| *count > 0);
    nonzero
        .map(|(count, word)| format!(", {count} {word}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::report::ItemStatus;

    fn item(kind: EntryKind, name: &str, status: ItemStatus, reason: Option<&str>) -> ReportItem {
        ReportItem::new(kind, name.into(), status, reason.map(str::to_owned))
    }

    #[test]
    fn counts_show_successes_of_all_items() {
        let full = Some("the disk is full");
        let items = [
            item(EntryKind::Image, "a", ItemStatus::Done, None),
            item(EntryKind::Image, "b", ItemStatus::Failed, full),
            item(EntryKind::Image, "c", ItemStatus::Failed, Some("404")),
            item(EntryKind::File, "d", ItemStatus::Present, None),
            item(EntryKind::Package, "e", ItemStatus::Failed, full),
        ];
        assert_eq!(
            success_counts(&items),
            "1 of 3 images, 1 file, 0 of 1 set of packages"
        );
        assert_eq!(success_counts(&[]), "nothing");
        let totals = RunTotals {
            failed: 3,
            missing: 1,
            ..RunTotals::default()
        };
        assert_eq!(failure_counts(&totals), ", 3 failed, 1 missing");
    }
}
