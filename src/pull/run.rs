//! Runs a pull: each digest is fetched once, the biggest blobs first.

use super::share::ShardShare;
use landfall_content::{
    self as content, BlobStore, EntryPart, LockEntry, PartOrigin, PartSource, ScheduleStep,
    ShardEntry, Transfer, TransferError, TransferOutcome, TransferSchedule, TransferSlot, Watchdog,
    WriteError, present_blobs, unique_blobs,
};
use landfall_http::{Activity, ErrorKind};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::{Descriptor, Digest, Limits, media_type, trim_index};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Why a pull ended early. Items that fail do not end it: they are in the report.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The store or the bundle cannot be used.
    #[error(transparent)]
    Sink(#[from] WriteError),
}

/// The number of manifests that are fetched at once, in addition to the blobs.
const MANIFEST_SLOTS: usize = 4;
/// The maximum number of repositories that are tried for one blob.
const ORIGINS: usize = 4;

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
        let (into, progress) = (into.clone(), progress.clone());
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
    // items of which everything is present do not count as work to do
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
    });
    while let Some(step) = schedule.step().await {
        match step {
            ScheduleStep::Begin(PullTask { digest, .. }, slot) => {
                let (transfer, into) = (transfer.clone(), into.clone());
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
    let items: Vec<ReportItem> = shard_entries
        .iter()
        .map(|shard_entry| outcome.item(shard_entry))
        .collect();
    // The layout must not name an item whose parts are elsewhere. Items that are split between
    // shards get their names from `pack`.
    let whole = shard_entries.into_iter().zip(&items);
    let whole = whole
        .filter(|(shard_entry, item)| shard_entry.is_whole() && item.status != ItemStatus::Failed);
    into.record_complete(&mut whole.map(|(shard_entry, _)| shard_entry.entry))?;
    Ok(items.into_iter().chain(share.losses()).collect())
}

/// A blob or manifest to fetch.
struct PullTask {
    digest: Digest,
    size: u64,
    rank: u64,
    is_manifest: bool,
    /// The first host that has the blob.
    host: Arc<str>,
    /// The first entry that needs it.
    entry: usize,
}

impl content::ScheduledTask for PullTask {
    fn host(&self) -> &Arc<str> {
        &self.host
    }
}

impl PullTask {
    /// Whether the task has the default rank, which depends only on its size. Some stores rank
    /// blobs in another way.
    fn is_by_size(&self) -> bool {
        self.rank == u64::MAX - self.size
    }
}

/// Sorts by rank. Blobs that are ranked by size are sorted by entry, the entry with the biggest
/// blob first. So entries become complete one after another, instead of all at the end with the
/// smallest blobs.
fn sort(tasks: &mut [PullTask]) {
    let mut biggest: HashMap<usize, u64> = HashMap::new();
    for task in tasks.iter().filter(|task| task.is_by_size()) {
        let rank = biggest.entry(task.entry).or_insert(task.rank);
        *rank = task.rank.min(*rank);
    }
    tasks.sort_by_key(|task| {
        if task.is_by_size() {
            (biggest[&task.entry], task.entry, task.rank)
        } else {
            (task.rank, 0, task.rank)
        }
    });
}

/// The blobs to fetch, and the state of their entries.
struct Pending {
    tasks: Vec<PullTask>,
    outcome: PullOutcome,
    bytes: u64,
}

impl Pending {
    /// The blobs that are not in `present`, sorted by rank. Content that is computed from the lock
    /// is written at once.
    fn new(
        share: &ShardShare<'_>,
        into: &dyn BlobStore,
        rehash: bool,
        present: &HashSet<Digest>,
    ) -> Result<Pending, WriteError> {
        let shard_entries: Vec<ShardEntry> = share.each().collect();
        for part in shard_entries
            .iter()
            .flat_map(|shard_entry| &shard_entry.entry.parts)
            .filter(|part| !part.is_stored())
        {
            // removes a damaged copy, which `put` would consider present
            if rehash {
                into.has_blob(&part.descriptor, true)?;
            }
            if let PartOrigin::Computed(bytes) = &part.origin {
                into.put(&part.descriptor, bytes)?;
            }
        }
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        let mut outcome = PullOutcome {
            open: vec![0; shard_entries.len()],
            ..PullOutcome::default()
        };
        // one allocation per host, not one per blob of a large lock
        let mut hosts: HashMap<&str, Arc<str>> = HashMap::new();
        for (at, shard_entry) in shard_entries.iter().enumerate() {
            for (index, part) in shard_entry
                .entry
                .parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.is_stored())
            {
                let Descriptor { digest, size, .. } = &part.descriptor;
                if present.contains(digest) {
                    continue;
                }
                if !outcome.parts.contains_key(digest) {
                    let (rank, is_manifest) =
                        (into.fetch_rank(&part.descriptor), part.is_manifest());
                    let host = hosts
                        .entry(part.host())
                        .or_insert_with_key(|host| (*host).into())
                        .clone();
                    let digest = digest.clone();
                    tasks.push(PullTask {
                        digest,
                        size: *size,
                        rank,
                        is_manifest,
                        host,
                        entry: at,
                    });
                    bytes += size;
                }
                outcome
                    .parts
                    .entry(digest.clone())
                    .or_default()
                    .wanted
                    .push((at, index));
                outcome.open[at] += 1;
            }
        }
        sort(&mut tasks);
        outcome.shard_entries = shard_entries;
        Ok(Pending {
            tasks,
            outcome,
            bytes,
        })
    }
}

/// Fetches a blob from the first repository that delivers it. If all fail, returns the error of the
/// first. A failure of the destination is final, since it would happen with every source.
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

/// The state of all entries of a pull.
#[derive(Default)]
struct PullOutcome {
    /// The entries of the lock, reduced to the parts that this shard fetches.
    shard_entries: Vec<ShardEntry>,
    parts: HashMap<Digest, BlobFetch>,
    /// The number of parts that each entry still waits for.
    open: Vec<usize>,
    /// The error of a full disk. It is the reason of all items whose tasks it cancelled.
    full: Option<String>,
    /// The message of the watchdog, if it ended the transfers.
    stuck: Option<String>,
}

#[derive(Default)]
struct BlobFetch {
    /// The parts that need the blob, by entry and position.
    wanted: Vec<(usize, usize)>,
    /// The result; `None` if the task panicked or was aborted.
    result: Option<Result<TransferOutcome, TransferError>>,
}

impl PullOutcome {
    /// Returns one part for each repository that has the blob.
    fn origins(&self, digest: &Digest) -> Vec<EntryPart> {
        let wanted = self
            .parts
            .get(digest)
            .into_iter()
            .flat_map(|fetch| &fetch.wanted);
        let mut parts: Vec<EntryPart> = wanted
            .map(|(at, part)| self.shard_entries[*at].entry.parts[*part].clone())
            .collect();
        parts.dedup_by(|a, b| a.origin == b.origin);
        parts.truncate(ORIGINS);
        parts
    }

    /// Records the result of a task, and reports the entries that it completes.
    fn record_result(
        &mut self,
        digest: Digest,
        result: Result<TransferOutcome, TransferError>,
        progress: &dyn Progress,
    ) {
        if let Err(error) = &result
            && error.is_full()
        {
            self.full.get_or_insert_with(|| error.to_string());
        }
        progress.parts_done(1);
        let fetch = self.parts.entry(digest).or_default();
        fetch.result = Some(result);
        for (at, _) in std::mem::take(&mut fetch.wanted) {
            self.open[at] -= 1;
            if self.open[at] == 0 {
                progress.item(&self.shard_entries[at].entry.name);
            }
        }
    }

    /// Writes the trimmed indexes of an entry. They are computed from the whole ones, so this runs
    /// after all transfers.
    fn compute_trimmed(&mut self, entry: &LockEntry, into: &dyn BlobStore) {
        for part in &entry.parts {
            if let PartOrigin::Trimmed { of, keep } = &part.origin {
                let digest = &part.descriptor.digest;
                if into.has_blob(&part.descriptor, false).unwrap_or(false) {
                    continue;
                }
                let result = into
                    .read(of)
                    .map_err(invalid_source)
                    .and_then(|index| trim_index(&index, keep).map_err(invalid_source))
                    .and_then(|bytes| Ok(into.put(&part.descriptor, &bytes)?));
                if let Err(error) = result {
                    self.parts.entry(digest.clone()).or_default().result = Some(Err(error));
                }
            }
        }
    }

    fn item(&self, shard_entry: &ShardEntry) -> ReportItem {
        let entry = &shard_entry.entry;
        let mut status = ItemStatus::Present;
        let mut reason = None;
        for part in &entry.parts {
            match self
                .parts
                .get(&part.descriptor.digest)
                .map(|fetch| &fetch.result)
            {
                None => {}
                Some(Some(Ok(TransferOutcome::Received(1..)))) if status == ItemStatus::Present => {
                    status = ItemStatus::Done
                }
                Some(Some(Ok(_))) => {}
                Some(result) => {
                    status = ItemStatus::Failed;
                    reason.get_or_insert_with(|| match (result, &self.full) {
                        (Some(Err(error)), None) => failure_reason(entry, part, error),
                        (Some(Err(error)), Some(_)) if !error.is_full() => {
                            failure_reason(entry, part, error)
                        }
                        (_, Some(full)) => format!("destination: {full}"),
                        (_, None) => {
                            let stuck = self.stuck.as_deref();
                            format!(
                                "source: {}",
                                stuck.unwrap_or("its transfer ended without a result")
                            )
                        }
                    });
                }
            }
        }
        let item = shard_entry.item();
        ReportItem {
            status,
            reason: reason.or(item.reason),
            ..item
        }
    }
}

fn invalid_source(error: impl ToString) -> TransferError {
    TransferError::new(TransferSide::Source, ErrorKind::Invalid, error.to_string())
}

/// The reason of an item whose part failed. For a set of packages, it contains the URL of the
/// package, and what to do if the repository has replaced it.
fn failure_reason(entry: &LockEntry, part: &EntryPart, error: &TransferError) -> String {
    let why = format!("{}: {error}", error.side);
    let Some(url) = part
        .origin
        .url()
        .filter(|_| entry.kind == EntryKind::Package)
    else {
        return why;
    };
    let is_metadata = part.descriptor.media_type == media_type::OCTETS;
    // A package repository replaces metadata and packages. The store that locked the set has kept
    // the metadata, but not the packages.
    let help = if !error.may_be_elsewhere() {
        ""
    } else if is_metadata {
        "; the repository has replaced its metadata since it was locked: pull with the store that \
         locked it (`--store DIR`, or a copy of it), or lock what the repository has now with \
         `landfall lock --refresh`"
    } else {
        "; if the repository has replaced the package, `landfall lock --refresh` locks its current \
         version"
    };
    format!("{url}: {why}{help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_blobs_of_an_entry_are_fetched_before_those_of_the_next() {
        let task = |entry, size, rank: Option<u64>| PullTask {
            digest: Digest::sha256(&[entry as u8, size as u8]),
            size,
            rank: rank.unwrap_or(u64::MAX - size),
            is_manifest: false,
            host: "r.test".into(),
            entry,
        };
        let mut tasks = [
            task(0, 50, None),
            task(0, 1, None),
            task(1, 90, None),
            task(1, 2, None),
            task(2, 70, None),
            task(2, 3, None),
            // a store that ranks its blobs itself
            task(0, 4, Some(8)),
            task(2, 5, Some(7)),
        ];
        sort(&mut tasks);
        let order: Vec<(usize, u64)> = tasks.iter().map(|task| (task.entry, task.size)).collect();
        assert_eq!(
            order,
            [
                (2, 5),
                (0, 4),
                (1, 90),
                (1, 2),
                (2, 70),
                (2, 3),
                (0, 50),
                (0, 1)
            ]
        );
    }
}
