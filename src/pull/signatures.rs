//! Checks the claims of a lock that no digest covers: the signatures of OS packages, the hashes of
//! providers, and the signatures that the site demands. An item with a false claim fails. An item
//! whose parts were pulled by several shards is checked by the command that has all of them.

use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_item::{ItemKind, SignatureVerdicts};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::sign::SignatureTime;
use landfall_signature::SignaturePolicy;
use std::sync::Arc;

/// Checks the packages and providers of `lock` in `blobs`, and marks the items that fail.
pub(crate) async fn check_packages(
    lock: &Lock,
    blobs: Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    for set in &lock.packages {
        check_contradictions(set.clone(), &blobs, items).await;
    }
    for provider in &lock.providers {
        check_contradictions(provider.clone(), &blobs, items).await;
    }
}

/// Verifies the items of `lock` by `policy`, the rules of the site, with the signatures in `blobs`.
/// Marks the items that fail.
pub(crate) async fn check_signatures(
    lock: &Lock,
    policy: &SignaturePolicy,
    blobs: Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    if policy.is_empty() {
        return;
    }
    let (lock, policy) = (lock.clone(), policy.clone());
    let verifying =
        tokio::task::spawn_blocking(move || SignatureVerdicts::of(&lock, &policy, &blobs).failed);
    match verifying.await {
        Ok(failed) => failed.into_iter().for_each(|failed| {
            if let Some(item) = pulled(items, failed.kind, &failed.name) {
                item.status = ItemStatus::Failed;
                item.reason = failed.reason;
            }
        }),
        // nothing was verified
        Err(error) => items.iter_mut().for_each(|item| {
            item.status = ItemStatus::Failed;
            item.reason = Some(error.to_string());
        }),
    }
}

/// The report item, unless its transfer failed: the reason of a failed transfer must not be
/// replaced by that of a missing file.
fn pulled<'a>(
    items: &'a mut [ReportItem],
    kind: EntryKind,
    name: &str,
) -> Option<&'a mut ReportItem> {
    items
        .iter_mut()
        .find(|item| item.kind == kind && item.name == name)
        .filter(|item| item.status != ItemStatus::Failed)
}

/// Compares `locked` with its content in `blobs`, unless a part is missing.
async fn check_contradictions(
    locked: impl ItemKind,
    blobs: &Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    let Some(item) = pulled(items, locked.as_item().kind(), &locked.as_item().name()) else {
        return;
    };
    if locked.as_item().entry().parts.iter().any(|part| {
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
    let check = tokio::task::spawn_blocking(move || {
        let item = locked.as_item();
        item.contradictions(&*blobs, SignatureTime::Now)
    });
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
