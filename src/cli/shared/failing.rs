//! What fails again and again, as the store remembers it: since when.

use landfall_content::WriteError;
use landfall_content::store::Disk;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file in the store. The lock names no time, so it cannot have this.
const FILE: &str = ".landfall/failing";

/// An item that failed in the last run.
#[derive(Serialize, Deserialize)]
struct Failing {
    kind: EntryKind,
    name: String,
    /// The day of the first run in which it failed, `YYYY-MM-DD`.
    since: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    items: Vec<Failing>,
}

/// Says of each of `items` that failed since when it does, and remembers it in the store. What is
/// good again is forgotten.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn remember(
    disk: &Disk,
    items: &mut [ReportItem],
    today: jiff::civil::Date,
) -> Result<(), WriteError> {
    disk.edit(FILE, |old| {
        let written = serde_json::from_slice::<Written>(old)
            .ok()
            .filter(|written| written.version == 1);
        let old_items = written.map(|written| written.items).unwrap_or_default();
        let known: BTreeMap<(EntryKind, String), String> = old_items
            .into_iter()
            .map(|one| ((one.kind, one.name), one.since))
            .collect();
        let lost = items
            .iter_mut()
            .filter(|item| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing));
        let failing: Vec<Failing> = lost
            .map(|item| {
                let since = known.get(&(item.kind, item.name.clone()));
                let since = since.cloned().unwrap_or_else(|| today.to_string());
                let why = item.reason.take().unwrap_or_else(|| "it failed".into());
                item.reason = Some(format!("{why} (failing since {since})"));
                Failing {
                    kind: item.kind,
                    name: item.name.clone(),
                    since,
                }
            })
            .collect();
        if failing.is_empty() && old.is_empty() {
            return Vec::new();
        }
        let mut bytes = serde_json::to_vec_pretty(&Written {
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
    fn the_first_day_of_a_failure_is_told_until_it_is_good_again() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path()).unwrap();
        let item = |status| ReportItem {
            kind: EntryKind::Image,
            name: "a:1".into(),
            digest: None,
            bytes: None,
            packages: 0,
            status,
            reason: Some("404".into()),
        };
        let told = |status, day| {
            let mut items = [item(status)];
            remember(&disk, &mut items, date(2026, 11, day)).unwrap();
            items[0].reason.clone().unwrap()
        };
        assert_eq!(
            told(ItemStatus::Failed, 1),
            "404 (failing since 2026-11-01)"
        );
        assert_eq!(
            told(ItemStatus::Missing, 9),
            "404 (failing since 2026-11-01)"
        );
        assert_eq!(told(ItemStatus::Done, 10), "404");
        assert_eq!(
            told(ItemStatus::Failed, 11),
            "404 (failing since 2026-11-11)"
        );
    }
}
