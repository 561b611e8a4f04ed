//! Lines about changes, and parts of the closing line of a verb.

use crate::cli::shared::listing::describe_kinds;
use crate::cli::shared::package_changes::package_lines;
use crate::lock::{EndpointChange, LockChange};
use landfall_model::report::{EntryCount, ItemStatus, ReportItem, RunTotals, one_line};

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
    let is_good =
        |item: &&ReportItem| matches!(item.status, ItemStatus::Done | ItemStatus::Present);
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
    use landfall_model::report::EntryKind;

    fn item(kind: EntryKind, name: &str, status: ItemStatus, reason: Option<&str>) -> ReportItem {
        ReportItem {
            kind,
            name: name.into(),
            digest: None,
            bytes: None,
            packages: 0,
            status,
            reason: reason.map(str::to_owned),
        }
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
