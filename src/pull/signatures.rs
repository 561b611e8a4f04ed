//! Checks the signatures of packages that are signed one by one. A package with a wrong signature
//! makes its set fail. A set whose parts were pulled by several shards is checked by the command
//! that has all of them.

use landfall_content::BlobRead;
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::sign::SignatureTime;
use std::sync::Arc;

/// Checks the signatures of the packages of `lock` in `blobs`, and marks the items that fail.
pub(crate) async fn check_packages(
    lock: &Lock,
    blobs: Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    for set in &lock.packages {
        let Some(item) = items
            .iter_mut()
            .find(|item| item.kind == EntryKind::Package && item.name == set.name)
            // the reason of a failed transfer must not be replaced by that of a missing file
            .filter(|item| item.status != ItemStatus::Failed)
        else {
            continue;
        };
        if set.entry().parts.iter().any(|part| {
            part.is_stored()
                && blobs
                    .stat(&part.descriptor.digest)
                    // a part that cannot be read is not missing: the check below reports it
                    .is_ok_and(|found| found != Some(part.descriptor.size))
        }) {
            continue;
        }
        let set = set.clone();
        let blobs = blobs.clone();
        // reads and verifies whole packages, which would block the async runtime
        let check =
            tokio::task::spawn_blocking(move || set.contradictions(&*blobs, SignatureTime::Now));
        let faults = check.await.unwrap_or_else(|error| vec![error.to_string()]);
        if let Some(first) = faults.first() {
            let more = faults.len() - 1;
            let more = if more > 0 {
                format!(" (and {more} more)")
            } else {
                String::new()
            };
            item.status = ItemStatus::Failed;
            item.reason = Some(format!("{first}{more}"));
        }
    }
}
