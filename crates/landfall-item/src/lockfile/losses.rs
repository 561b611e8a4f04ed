//! The missing items of a lock, as items of a report.

use super::{AcceptedLoss, Lock};
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_model::today;

/// The missing items of a lock: those that could not be resolved, and those whose loss the manifest
/// accepts until a date.
pub fn losses(lock: &Lock) -> Vec<ReportItem> {
    let today = today().to_string();
    let item = |kind, name: &str, status, reason: String| ReportItem {
        kind,
        name: name.into(),
        digest: None,
        bytes: None,
        packages: 0,
        status,
        reason: Some(reason),
    };
    let unresolved = lock.unresolved.iter().map(|lost| {
        item(
            lost.kind,
            &lost.name,
            ItemStatus::Missing,
            lost.cause.clone(),
        )
    });
    let accepted = lock.missing.iter().map(|lost: &AcceptedLoss| {
        let status = if lost.until >= today {
            ItemStatus::Skipped
        } else {
            ItemStatus::Missing
        };
        item(
            lost.kind,
            &lost.name,
            status,
            format!("{} (accepted until {})", lost.reason, lost.until),
        )
    });
    unresolved.chain(accepted).collect()
}
