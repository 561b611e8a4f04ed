//! Records in the store when each item began to fail, so that the report of a scheduled job can
//! name that day.

use jiff::ToSpan;
use jiff::civil::Date;
use landfall_content::WriteError;
use landfall_content::store::DiskStore;
use landfall_model::report::{EntryKind, ReportItem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The path of the file in the store. The days are not in the lock, because two runs with the same
/// result must give the same lock.
const FILE: &str = ".landfall/failing";
/// The number of days after which an item that no run handles is removed from the record.
const KEPT_DAYS: i64 = 30;

/// An item that failed or was missing in the last run that handled it.
#[derive(Serialize, Deserialize)]
struct FailingItem {
    kind: EntryKind,
    name: String,
    /// The day of the first run in which it failed, `YYYY-MM-DD`.
    since: String,
    /// The day of the last run in which it failed.
    last: String,
}

#[derive(Serialize, Deserialize)]
struct FailingFile {
    version: u32,
    items: Vec<FailingItem>,
}

/// Adds to the reason of each failed or missing item the day on which the item began to fail, and
/// records that day in the store. An item that succeeds is removed from the record. A recorded item
/// that is not in `items` stays for [`KEPT_DAYS`]: jobs with other manifests may share the store.
pub(super) fn mark_failing(
    disk: &DiskStore,
    items: &mut [ReportItem],
    today: Date,
) -> Result<(), WriteError> {
    disk.edit(FILE, |old| {
        // a damaged or newer file counts as empty: only the message depends on it
        let recorded = serde_json::from_slice::<FailingFile>(old)
            .ok()
            .filter(|recorded| recorded.version == 1);
        let old_items = recorded.map(|recorded| recorded.items).unwrap_or_default();
        let oldest = today.saturating_sub(KEPT_DAYS.days()).to_string();
        let mut failing: BTreeMap<(EntryKind, String), FailingItem> = old_items
            .into_iter()
            .filter(|one| one.last >= oldest)
            .map(|one| ((one.kind, one.name.clone()), one))
            .collect();
        for item in items.iter_mut() {
            let key = (item.kind, item.name.clone());
            if !item.status.is_loss() {
                failing.remove(&key);
                continue;
            }
            let record = failing.entry(key).or_insert_with(|| FailingItem {
                kind: item.kind,
                name: item.name.clone(),
                since: today.to_string(),
                last: String::new(),
            });
            record.last = today.to_string();
            let why = item.reason.take().unwrap_or_else(|| "it failed".into());
            item.reason = Some(format!("{why} (failing since {})", record.since));
        }
        // a store without failures does not get the file
        if failing.is_empty() && old.is_empty() {
            return Vec::new();
        }
        let mut bytes = serde_json::to_vec_pretty(&FailingFile {
            version: 1,
            items: failing.into_values().collect(),
        })
        .unwrap_or_default();
        bytes.push(b'\n');
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use landfall_model::report::ItemStatus;

    fn item(name: &str, status: ItemStatus) -> ReportItem {
        ReportItem::new(EntryKind::Image, name.into(), status, Some("404".into()))
    }

    #[test]
    fn the_first_day_of_a_failure_is_named_until_the_item_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let reason = |name, status, day| {
            let mut items = [item(name, status)];
            mark_failing(&disk, &mut items, date(2026, 11, day)).unwrap();
            items[0].reason.clone().unwrap()
        };
        let first = "404 (failing since 2026-11-01)";
        assert_eq!(reason("a:1", ItemStatus::Failed, 1), first);
        // a job with another manifest, which does not list `a:1`
        let second = "404 (failing since 2026-11-02)";
        assert_eq!(reason("b:1", ItemStatus::Failed, 2), second);
        assert_eq!(reason("a:1", ItemStatus::Missing, 9), first);
        assert_eq!(reason("a:1", ItemStatus::Done, 10), "404");
        assert_eq!(reason("b:1", ItemStatus::Failed, 10), second);
        assert_eq!(
            reason("a:1", ItemStatus::Failed, 11),
            "404 (failing since 2026-11-11)"
        );
    }

    #[test]
    fn an_item_that_no_run_handles_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let recorded = |name, month, day| {
            let mut items = [item(name, ItemStatus::Failed)];
            mark_failing(&disk, &mut items, date(2026, month, day)).unwrap();
            let recorded = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
            let recorded: FailingFile = serde_json::from_str(&recorded).unwrap();
            let names = recorded.items.into_iter().map(|one| one.name);
            names.collect::<Vec<_>>()
        };
        assert_eq!(recorded("a:1", 1, 1), ["a:1"]);
        assert_eq!(recorded("b:1", 1, 31), ["a:1", "b:1"]);
        assert_eq!(recorded("b:1", 2, 1), ["b:1"]);
    }
}
