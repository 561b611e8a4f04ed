//! Packages that are signed one by one: those of a pull whose signature is not right make their
//! item fail. A set of which something is not here yet, as other shards bring it, is left to
//! whoever has all of it.

use landfall_content::{BlobRead, EntryPart};
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::sign::SignatureTime;
use std::sync::Arc;

/// Checks the signatures of what `lock` names among `blobs`, which have come, and tells `items`.
pub(crate) async fn check_packages(
    lock: &Lock,
    blobs: Arc<dyn BlobRead>,
    items: &mut [ReportItem],
) {
    for set in &lock.packages {
        let is_own =
            |item: &&mut ReportItem| item.kind == EntryKind::Package && item.name == set.name;
        let Some(item) = items
            .iter_mut()
            .find(is_own)
            .filter(|item| item.status != ItemStatus::Failed)
        else {
            continue;
        };
        let lacks = |part: &EntryPart| {
            part.is_stored()
                && blobs
                    .stat(&part.descriptor.digest)
                    .is_ok_and(|found| found != Some(part.descriptor.size))
        };
        if set.entry().parts.iter().any(lacks) {
            continue;
        }
        let (set, blobs) = (set.clone(), blobs.clone());
        let checking =
            tokio::task::spawn_blocking(move || set.contradictions(&*blobs, SignatureTime::Now));
        let faults = checking
            .await
            .unwrap_or_else(|error| vec![error.to_string()]);
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
