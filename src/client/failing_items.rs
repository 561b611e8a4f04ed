//! Records in the store the day since which each item has been failing, so that the report of a
//! scheduled job can name it.

use landfall_content::WriteError;
use landfall_content::store::DiskStore;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The path of the file in the store. The days are not in the lock, because two runs with the same
/// result must give the same lock.
const FILE: &str = ".landfall/failing";

/// An item that failed or was missing in the last run.
#[derive(Serialize, Deserialize)]
struct FailingItem {
    kind: EntryKind,
    name: String,
    /// The day of the first run in which it failed, `YYYY-MM-DD`.
    since: String,
}

#[derive(Serialize, Deserialize)]
struct FailingFile {
    version: u32,
    items: Vec<FailingItem>,
}

/// Extends the reason of each failed or missing item by the day since which it has been failing,
/// and records that day in the store. All other items are removed from the record.
pub(super) fn mark_failing(
    disk: &DiskStore,
    items: &mut [ReportItem],
    today: jiff::civil::Date,
) -> Result<(), WriteError> {
    disk.edit(FILE, |old| {
        // a damaged or newer file counts as empty: it only serves the message
        let recorded = serde_json::from_slice::<FailingFile>(old)
            .ok()
            .filter(|recorded| recorded.version == 1);
        let old_items = recorded.map(|recorded| recorded.items).unwrap_or_default();
        let since: BTreeMap<(EntryKind, String), String> = old_items
            .into_iter()
            .map(|one| ((one.kind, one.name), one.since))
            .collect();
        let failed = items
            .iter_mut()
            .filter(|item| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing));
        let failing: Vec<FailingItem> = failed
            .map(|item| {
                let day = since.get(&(item.kind, item.name.clone()));
                let day = day.cloned().unwrap_or_else(|| today.to_string());
                let why = item.reason.take().unwrap_or_else(|| "it failed".into());
                item.reason = Some(format!("{why} (failing since {day})"));
                FailingItem {
                    kind: item.kind,
                    name: item.name.clone(),
                    since: day,
                }
            })
            .collect();
        // a store without failures does not get the file
        if failing.is_empty() && old.is_empty() {
            return Vec::new();
        }
        let mut bytes = serde_json::to_vec_pretty(&FailingFile {
            version: 1,
            items: failing,
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

    #[test]
    fn the_first_day_of_a_failure_is_named_until_the_item_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let item = |status| ReportItem {
            kind: EntryKind::Image,
            name: "a:1".into(),
            digest: None,
            bytes: None,
            packages: 0,
            status,
            reason: Some("404".into()),
        };
        let reason = |status, day| {
            let mut items = [item(status)];
            mark_failing(&disk, &mut items, date(2026, 11, day)).unwrap();
            items[0].reason.clone().unwrap()
        };
        assert_eq!(
            reason(ItemStatus::Failed, 1),
            "404 (failing since 2026-11-01)"
        );
        assert_eq!(
            reason(ItemStatus::Missing, 9),
            "404 (failing since 2026-11-01)"
        );
        assert_eq!(reason(ItemStatus::Done, 10), "404");
        assert_eq!(
            reason(ItemStatus::Failed, 11),
            "404 (failing since 2026-11-11)"
        );
    }
}
