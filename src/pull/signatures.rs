//! Checks the claims of a lock that no digest covers: the signatures of OS packages, and the hashes
//! of providers. An item with a false claim fails. An item whose parts were pulled by several
//! shards is checked by the command that has all of them.

use landfall_content::BlobRead;
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_model::sign::SignatureTime;
use std::sync::Arc;

/// Checks the packages and providers of `lock` in `blobs`, and marks the items that fail.
pub(crate) async fn check_packages(
    lock: &Lock,
    blobs: Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    for set in &lock.packages {
        check_item(set.clone(), &blobs, items).await;
    }
    for provider in &lock.providers {
        check_item(provider.clone(), &blobs, items).await;
    }
}

/// Compares `locked` with its content in `blobs`, unless a part is missing.
async fn check_item(
    locked: impl LockedItem + 'static,
    blobs: &Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    let Some(item) = items
        .iter_mut()
        .find(|item| item.kind == locked.kind() && item.name == locked.name())
        // the reason of a failed transfer must not be replaced by that of a missing file
        .filter(|item| item.status != ItemStatus::Failed)
    else {
        return;
    };
    if locked.entry().parts.iter().any(|part| {
        part.is_stored()
            && blobs
                .stat(&part.descriptor.digest)
                // a part that cannot be read is not missing: the check below reports it
                .is_ok_and(|found| found != Some(part.descriptor.size))
    }) {
        return;
    }
    let blobs = blobs.clone();
    // reads and verifies whole packages, which would block the async runtime
    let check =
        tokio::task::spawn_blocking(move || locked.contradictions(&*blobs, SignatureTime::Now));
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
