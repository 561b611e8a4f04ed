//! The missing items of a lock, as items of a report.

use super::{AcceptedLoss, Lock};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::today;

/// The missing items of a lock: those that could not be resolved, and those whose loss the manifest
/// accepts until a date.
pub fn losses(lock: &Lock) -> Vec<ReportItem> {
    let unresolved = lock.unresolved.iter().map(|item| {
        missing_item(
            item.kind,
            &item.name,
            ItemStatus::Missing,
            item.cause.clone(),
        )
    });
    unresolved.chain(accepted_losses(lock)).collect()
}

/// The items whose loss the manifest accepts: skipped until the date, and missing after it.
pub fn accepted_losses(lock: &Lock) -> Vec<ReportItem> {
    let today = today().to_string();
    let accepted = lock.missing.iter().map(|loss: &AcceptedLoss| {
        // after the last day, the item counts as missing
        let status = if loss.until >= today {
            ItemStatus::Skipped
        } else {
            ItemStatus::Missing
        };
        missing_item(
            loss.kind,
            &loss.name,
            status,
            format!("{} (accepted until {})", loss.reason, loss.until),
        )
    });
    accepted.collect()
}

fn missing_item(kind: EntryKind, name: &str, status: ItemStatus, reason: String) -> ReportItem {
    ReportItem {
        kind,
        name: name.into(),
        digest: None,
        bytes: None,
        packages: 0,
        status,
        reason: Some(reason),
    }
}
