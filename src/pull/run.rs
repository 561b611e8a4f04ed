//! Runs a pull: each digest is fetched once, in the order of `pending.rs`.

use super::pending::{Pending, PullTask};
use super::share::ShardShare;
use landfall_content::{
    BlobStore, EntryPart, ListedAttestations, LockEntry, PartOrigin, PartSource, ScheduleStep,
    Transfer, TransferError, TransferOutcome, TransferSchedule, TransferSlot, Watchdog, WriteError,
    present_blobs, read_part, unique_blobs,
};
use landfall_http::Activity;
use landfall_model::Limits;
use landfall_model::report::{ItemStatus, Progress, ReportItem, TransferSide};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An error that ends a pull early. Items that fail do not end it: they are in the report.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The store or the bundle cannot be used.
    #[error(transparent)]
    Sink(#[from] WriteError),
}

/// The number of manifests that are fetched at once, in addition to the blobs.
const MANIFEST_SLOTS: usize = 4;

/// Fetches this shard's share of a lock into `into`. Blobs that are present are not requested; with
/// `rehash`, they are hashed even if the journal says that they were verified. Fails only if `into`
/// cannot be used: a failure of the source is an item of the report.
pub(crate) async fn pull(
    share: &ShardShare<'_>,
    source: Arc<dyn PartSource>,
    into: &Arc<dyn BlobStore>,
    limits: Limits,
    rehash: bool,
    progress: Arc<dyn Progress>,
    activity: &Activity,
) -> Result<Vec<ReportItem>, PullError> {
    let present = {
        let into = into.clone();
        let progress = progress.clone();
        let wanted = unique_blobs(share.each_entry());
        // this may hash the whole store, which would block the async runtime
        tokio::task::spawn_blocking(move || present_blobs(&*into, wanted, rehash, &*progress))
            .await
            .map_err(|error| WriteError::Refused(error.to_string()))??
    };
    let Pending {
        tasks,
        mut outcome,
        bytes,
    } = Pending::new(share, &**into, rehash, &present)?;
    // before the first transfer, so that a long pull does not end with a full disk
    if !tasks.is_empty()
        && let Some(space) =
            into.disk_space(&mut tasks.iter().map(|task| (&task.digest, task.size)))?
    {
        if !space.is_enough() {
            let message = format!(
                "store: it {space}; make room there, or name another store with --store DIR"
            );
            return Err(WriteError::Refused(message).into());
        }
        progress.tell(&space.to_string());
    }
    // an item whose parts are all present does not count as work to do
    progress.begin(
        "pull",
        outcome.open.iter().filter(|open| **open > 0).count() as u64,
        bytes,
    );
    progress.parts(tasks.len() as u64);
    // With one queue, the many small manifests would wait behind the biggest blobs.
    let (manifests, blobs) = tasks.into_iter().partition(|task| task.is_manifest);
    let queues = [(manifests, MANIFEST_SLOTS), (blobs, limits.jobs)];
    let watchdog = Watchdog::new(activity.clone(), limits.stuck);
    let mut schedule = TransferSchedule::new(queues, MANIFEST_SLOTS + limits.jobs, watchdog);
    // 1 is the queue of the blobs: slots without a blob help with the big ones
    let sink = into.clone().sink(limits, Some(schedule.idle_slots(1)));
    let transfer = Arc::new(Transfer {
        source,
        sink,
        limits,
        progress: progress.clone(),
        activity: activity.clone(),
    });
    while let Some(step) = schedule.step().await {
        match step {
            ScheduleStep::Begin(PullTask { digest, .. }, slot) => {
                let transfer = transfer.clone();
                let into = into.clone();
                let mut parts = outcome.origins(&digest);
                // If several hosts have the blob, a host that other tasks wait for is tried last.
                // The sort is stable, so the order of the lock decides otherwise.
                parts.sort_by_key(|part| schedule.is_waited_for(part.host()));
                let task_slot = slot.clone();
                schedule.spawn(slot, async move {
                    let result = fetch_from_any(&transfer, &parts, task_slot).await;
                    if let (Ok(_), Some(part)) = (&result, parts.first()) {
                        into.mark_present(&part.descriptor);
                    }
                    (digest, result)
                });
            }
            ScheduleStep::Done((digest, result)) => {
                if result.as_ref().is_err_and(TransferError::is_full) {
                    // the disk is full: all further transfers would fail too
                    schedule.cancel_waiting();
                }
                outcome.record_result(digest, result, &*progress);
            }
        }
    }
    outcome.stuck = schedule.stuck_message();
    let shard_entries = std::mem::take(&mut outcome.shard_entries);
    shard_entries
        .iter()
        .for_each(|shard_entry| outcome.compute_trimmed(&shard_entry.entry, &**into));
    progress.end();
    let mut items = Vec::new();
    let mut lost_referrers = Vec::new();
    for shard_entry in &shard_entries {
        let mut attestations = ListedAttestations::default();
        if outcome.lacks_part(&shard_entry.entry)
            && let Some(entry) = share.whole_entry(&shard_entry.entry)
        {
            attestations = listed_attestations(&entry, &*transfer.source, &**into).await;
        }
        let (item, lost) = outcome.items(shard_entry, &attestations);
        items.push(item);
        lost_referrers.push(lost);
    }
    // The layout must not name an item whose parts are elsewhere. Items that are split between
    // shards get their names from `pack`.
    let whole = shard_entries.into_iter().zip(&items);
    let whole = whole
        .filter(|(shard_entry, item)| shard_entry.is_whole() && item.status != ItemStatus::Failed);
    into.record_complete(&mut whole.map(|(shard_entry, _)| shard_entry.entry))?;
    let lost_referrers = lost_referrers.into_iter().flatten();
    let losses = lost_referrers.chain(share.losses());
    Ok(items.into_iter().chain(losses).collect())
}

/// The attestations that the index of an entry lists. Manifests that another shard has are read
/// from `source`.
async fn listed_attestations(
    entry: &LockEntry,
    source: &dyn PartSource,
    into: &dyn BlobStore,
) -> ListedAttestations {
    let mut manifests = BTreeMap::new();
    let read = entry
        .parts
        .iter()
        .filter(|part| part.is_manifest() && !matches!(part.origin, PartOrigin::Trimmed { .. }));
    for part in read {
        let bytes = match into.read(&part.descriptor) {
            Ok(bytes) => Some(bytes.into()),
            Err(_) => read_part(source, part).await.ok(),
        };
        manifests.extend(bytes.map(|bytes| (&part.descriptor.digest, bytes)));
    }
    ListedAttestations::of(entry, |one| Some(manifests.get(&one.digest)?.to_vec()))
}

/// Fetches a blob from the first origin that delivers it. If all fail, returns the error of the
/// first. A failure of the destination is final, since it would happen with every origin.
async fn fetch_from_any(
    transfer: &Transfer,
    parts: &[EntryPart],
    slot: Arc<TransferSlot>,
) -> Result<TransferOutcome, TransferError> {
    let mut first = None;
    for part in parts {
        match transfer.run(part, slot.clone()).await {
            Err(error) if error.side == TransferSide::Source => {
                first.get_or_insert(error);
            }
            other => return other,
        }
    }
    first.map_or(Ok(TransferOutcome::AlreadyPresent), Err)
}
