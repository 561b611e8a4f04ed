//! Downloads everything that a lock lists into a store or a bundle.
//!
//! Manifests and blobs have separate queues and slots; the entry with the largest blob comes first.
//! When the last blob has started, idle slots of its queue serve the remaining manifests. When
//! every transfer has started, idle slots help with blobs of 64 MiB and more: each helper downloads
//! the largest range that is missing, which is often the second half of the range of another
//! connection. The first connection reads in order and hashes. A journal next to the partial file
//! records the ranges, so a kill loses at most 4 MiB of each connection.
//!
//! With `--shard`, a pull downloads only the parts of the lock that belong to its shard. It adds
//! the name of an item to the layout only if all parts of the item belong to the shard. `pack` adds
//! the other names after it has found all parts.

mod outcome;
mod signatures;
#[cfg(test)]
mod together;

use self::outcome::PullOutcome;
use landfall_content::{
    BlobStore, EntryPart, IdleSlots, ListedAttestations, LockEntry, PartOrigin, PartSource,
    ScheduleStep, ShardEntry, Transfer, TransferError, TransferOutcome, TransferSchedule,
    TransferSlot, Watchdog, WriteError, present_blobs, read_part, unique_blobs,
};
use landfall_http::Activity;
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::{Descriptor, Digest, Failure, Limits, Shard, transfer_cost};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub(crate) use self::signatures::{check_packages, check_signatures};

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
) -> Result<Vec<ReportItem>, Failure> {
    let present = {
        let into = into.clone();
        let progress = progress.clone();
        let wanted = unique_blobs(share.each_entry());
        // this may hash the whole store, which would block the async runtime
        tokio::task::spawn_blocking(move || present_blobs(&*into, wanted, rehash, &*progress))
            .await
            .map_err(WriteError::from)??
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
    let (manifests, blobs): (Vec<PullTask>, Vec<PullTask>) =
        tasks.into_iter().partition(|task| task.is_manifest);
    let queues = [(manifests, MANIFEST_SLOTS), (blobs, limits.jobs)];
    let watchdog = Watchdog::new(activity.clone(), limits.stuck);
    let per_host = MANIFEST_SLOTS + limits.jobs;
    let mut schedule = TransferSchedule::new(queues, |task| &task.host, per_host, watchdog);
    // slots that no blob needs help with the big ones
    let idle = IdleSlots::new(schedule.slots());
    let sink = into.clone().sink(limits, Some(idle), None);
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
    // in the order of the lock, like the entries of the shard, so that each is computed only once
    let mut whole_entries = share.lock.each_entry();
    for shard_entry in &shard_entries {
        let own = &shard_entry.entry;
        let mut attestations = ListedAttestations::default();
        if outcome.lacks_part(own) {
            let whole = if shard_entry.is_whole() {
                None
            } else {
                whole_entries.find(|entry| is_same(entry, own))
            };
            let entry = whole.as_ref().unwrap_or(own);
            attestations = listed_attestations(entry, &*transfer.source, &**into).await;
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

// The blobs that a pull fetches, and their order.

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

impl PullTask {
    /// Whether the task has the default rank, which depends only on its size. Some stores rank
    /// blobs in another way.
    fn is_by_size(&self) -> bool {
        self.rank == u64::MAX - self.size
    }
}

/// Sorts by rank. Blobs that are ranked by size are sorted by entry, the entry with the biggest
/// blob first. Entries then become complete one after another, instead of all at the end with the
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
    /// The blobs that are not in `present`, in the order in which they are fetched. Content that is
    /// computed from the lock is written immediately.
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
        let mut tasks = Vec::new();
        let mut bytes = 0_u64;
        let mut outcome = PullOutcome::new(shard_entries.len());
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
                    bytes = bytes.saturating_add(*size);
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

/// The share of a lock that one shard pulls: the whole lock if there is only one shard.
pub(crate) struct ShardShare<'a> {
    lock: &'a Lock,
    shard: Shard,
    /// The digests of this shard; empty if there is only one shard.
    own: BTreeSet<Digest>,
}

impl<'a> ShardShare<'a> {
    /// Computes the share of this shard. It depends only on the lock and the shard, so pulls of
    /// different shards need not communicate.
    pub(crate) fn new(lock: &'a Lock, shard: Shard) -> ShardShare<'a> {
        let mut costs = BTreeMap::new();
        if !shard.is_only() {
            for part in lock.each_entry().flat_map(|entry| entry.parts) {
                costs.insert(
                    assigned_digest(&part).clone(),
                    transfer_cost(part.descriptor.size),
                );
            }
        }
        ShardShare {
            lock,
            shard,
            own: shard.own(costs),
        }
    }

    /// The entries of the lock that have parts in this shard, in the lock's order.
    pub(crate) fn each(&self) -> impl Iterator<Item = ShardEntry> {
        self.lock.each_entry().filter_map(|entry| {
            if self.shard.is_only() {
                Some(ShardEntry::whole(entry))
            } else {
                ShardEntry::filter(entry, |part| self.own.contains(assigned_digest(part)))
            }
        })
    }

    /// Like [`ShardShare::each`], without the number of parts that other shards have.
    pub(crate) fn each_entry(&self) -> impl Iterator<Item = LockEntry> {
        self.each().map(|own| own.entry)
    }

    /// The losses of the lock. Only the first shard returns them, so that they are reported once.
    pub(crate) fn losses(&self) -> Vec<ReportItem> {
        if self.shard.is_first() {
            losses(self.lock)
        } else {
            Vec::new()
        }
    }
}

/// Whether both are parts of one entry of a lock.
fn is_same(one: &LockEntry, other: &LockEntry) -> bool {
    (one.kind, &one.name, &one.digest) == (other.kind, &other.name, &other.digest)
}

/// The digest that decides to which shard a part belongs. A trimmed index is computed from the
/// whole index, so it belongs to the same shard.
fn assigned_digest(part: &EntryPart) -> &Digest {
    match &part.origin {
        PartOrigin::Trimmed { of, .. } => &of.digest,
        _ => &part.descriptor.digest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::store::DiskStore;
    use landfall_content::{LocalSource, MemoryBlobs};
    use landfall_model::document::growth::assert_linear;
    use landfall_model::report::SilentProgress;

    #[test]
    fn a_pull_in_which_everything_fails_takes_linear_time() {
        // on one thread, whose processor time is measured
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let activity = Activity::default();
        assert_linear(200, |count| {
            let files = (0..count).map(|number| {
                let digest = Digest::sha256(&number.to_le_bytes());
                format!(
                    "- {{name: \"https://h.test/{number:05}\", digest: \"{digest}\", size: 8}}\n"
                )
            });
            let lock = format!("version: 1\nfiles:\n{}", files.collect::<String>());
            let lock = Lock::parse("l", &lock).unwrap();
            let share = ShardShare::new(&lock, Shard::default());
            let dir = tempfile::tempdir().unwrap();
            let into: Arc<dyn BlobStore> = Arc::new(DiskStore::scratch(dir.path()).unwrap());
            let pulling = pull(
                &share,
                Arc::new(LocalSource(Arc::new(MemoryBlobs::default()))),
                &into,
                Limits {
                    attempts: 1,
                    ..Limits::default()
                },
                false,
                Arc::new(SilentProgress),
                &activity,
            );
            let items = runtime.block_on(pulling).unwrap();
            assert_eq!(items.len(), count);
            assert!(items.iter().all(|item| item.status == ItemStatus::Failed));
        });
    }

    #[test]
    fn blobs_are_sorted_by_entry_unless_the_store_ranks_them() {
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
