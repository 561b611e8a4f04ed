//! The run of a pull: each digest is fetched once, the biggest blobs first. Manifests have slots of
//! their own.

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

/// Why a pull ended early. Items that fail do not end it.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The store or the bundle cannot be used.
    #[error(transparent)]
    Sink(#[from] WriteError),
}

/// The number of manifests that are fetched at once, beside the blobs.
const MANIFEST_SLOTS: usize = 4;
/// The most repositories that are tried for one blob.
const ORIGINS: usize = 4;

/// Fetches the share of a lock into `into`. Blobs that are present are not requested; with `rehash`,
/// they are hashed whatever the journal says. Fails only if `into` cannot be used: a failure of the
/// source is an item of the report.
pub(crate) async fn pull(
    share: &ShardShare<'_>,
    source: Arc<dyn PartSource>,
    into: &Arc<dyn BlobStore>,
    limits: Limits,
    rehash: bool,
    progress: Arc<dyn Progress>,
    activity: &Activity,
) -> Result<Vec<ReportItem>, PullError> {
    let (sink, told, wanted) = (
        into.clone(),
        progress.clone(),
        unique_blobs(share.each_entry()),
    );
    let looking =
        tokio::task::spawn_blocking(move || present_blobs(&*sink, wanted, rehash, &*told));
    let there = looking
        .await
        .map_err(|error| WriteError::Refused(error.to_string()))??;
    let Pending {
        tasks,
        mut outcome,
        bytes,
    } = Pending::new(share, &**into, rehash, &there)?;
    if !tasks.is_empty()
        && let Some(room) =
            into.disk_space(&mut tasks.iter().map(|task| (&task.digest, task.size)))?
    {
        if !room.is_enough() {
            let words = format!(
                "store: it {room}; make room there, or name another store with --store DIR"
            );
            return Err(WriteError::Refused(words).into());
        }
        progress.tell(&room.to_string());
    }
    // what is there already is not to be done
    progress.begin(
        "pull",
        outcome.open.iter().filter(|open| **open > 0).count() as u64,
        bytes,
    );
    progress.parts(tasks.len() as u64);
    // Two queues, each in its order: the biggest blob begins first, and manifests do not wait for
    // blobs.
    let (manifests, blobs) = tasks.into_iter().partition(|task| task.is_manifest);
    let queues = [(manifests, MANIFEST_SLOTS), (blobs, limits.jobs)];
    let watchdog = Watchdog::new(activity.clone(), limits.stuck);
    let mut schedule = TransferSchedule::new(queues, MANIFEST_SLOTS + limits.jobs, watchdog);
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
                // a host that others wait for is tried last if other hosts have the blob too
                parts.sort_by_key(|part| schedule.is_waited_for(part.host()));
                let lent = slot.clone();
                schedule.spawn(slot, async move {
                    let result = bring_any(&transfer, &parts, lent).await;
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
                outcome.settle(digest, result, &*progress);
            }
        }
    }
    outcome.stuck = schedule.stuck_message();
    let owns = std::mem::take(&mut outcome.owns);
    owns.iter()
        .for_each(|own| outcome.compute_trimmed(&own.entry, &**into));
    progress.end();
    let items: Vec<ReportItem> = owns.iter().map(|own| outcome.item(own)).collect();
    // entries that other shards have parts of are named by `pack`
    let whole = owns.into_iter().zip(&items);
    let whole = whole.filter(|(own, item)| own.is_whole() && item.status != ItemStatus::Failed);
    into.record_complete(&mut whole.map(|(own, _)| own.entry))?;
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
    /// Whether only its size decides its place in the order.
    fn is_by_size(&self) -> bool {
        self.rank == u64::MAX - self.size
    }
}

/// Sorts by rank. Blobs that are ranked by size are sorted by entry, the entry with the biggest blob
/// first. So entries become complete one after another, instead of all at the end with the smallest
/// blobs.
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
    /// The blobs that are not in `there`, by rank. Content that follows from the lock is written at
    /// once.
    fn new(
        share: &ShardShare<'_>,
        into: &dyn BlobStore,
        rehash: bool,
        there: &HashSet<Digest>,
    ) -> Result<Pending, WriteError> {
        let owns: Vec<ShardEntry> = share.each().collect();
        for part in owns
            .iter()
            .flat_map(|own| &own.entry.parts)
            .filter(|part| !part.is_stored())
        {
            if rehash {
                into.has_blob(&part.descriptor, true)?;
            }
            if let PartOrigin::Computed(bytes) = &part.origin {
                into.put(&part.descriptor, bytes)?;
            }
        }
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        let mut outcome = PullOutcome {
            open: vec![0; owns.len()],
            ..PullOutcome::default()
        };
        let mut hosts: HashMap<&str, Arc<str>> = HashMap::new();
        for (at, own) in owns.iter().enumerate() {
            for (index, part) in own
                .entry
                .parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.is_stored())
            {
                let Descriptor { digest, size, .. } = &part.descriptor;
                if there.contains(digest) {
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
        outcome.owns = owns;
        Ok(Pending {
            tasks,
            outcome,
            bytes,
        })
    }
}

/// Fetches a blob from the first repository that has it. A failure of the destination is final.
async fn bring_any(
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
    /// The parts of each entry that this shard fetches.
    owns: Vec<ShardEntry>,
    parts: HashMap<Digest, Fetch>,
    /// The number of parts that each entry still waits for.
    open: Vec<usize>,
    /// The error of a full disk: it is the reason of all items that it stops.
    full: Option<String>,
    /// The message of the watchdog, if it ended the transfers.
    stuck: Option<String>,
}

#[derive(Default)]
struct Fetch {
    /// The parts that need the blob, by entry and position.
    wanted: Vec<(usize, usize)>,
    /// The result; `None` if the task panicked or was aborted.
    result: Option<Result<TransferOutcome, TransferError>>,
}

impl PullOutcome {
    /// The part in each repository that has the blob.
    fn origins(&self, digest: &Digest) -> Vec<EntryPart> {
        let wanted = self
            .parts
            .get(digest)
            .into_iter()
            .flat_map(|fetch| &fetch.wanted);
        let mut parts: Vec<EntryPart> = wanted
            .map(|(at, part)| self.owns[*at].entry.parts[*part].clone())
            .collect();
        parts.dedup_by(|a, b| a.origin == b.origin);
        parts.truncate(ORIGINS);
        parts
    }

    fn settle(
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
                progress.item(&self.owns[at].entry.name);
            }
        }
    }

    fn compute_trimmed(&mut self, entry: &LockEntry, into: &dyn BlobStore) {
        for part in &entry.parts {
            if let PartOrigin::Trimmed { of, keep } = &part.origin {
                let digest = &part.descriptor.digest;
                if into.has_blob(&part.descriptor, false).unwrap_or(false) {
                    continue;
                }
                let local = |message: String| {
                    TransferError::new(TransferSide::Source, ErrorKind::Invalid, message)
                };
                let result = into
                    .read(of)
                    .map_err(|error| local(error.to_string()))
                    .and_then(|index| {
                        trim_index(&index, keep).map_err(|error| local(error.to_string()))
                    })
                    .and_then(|bytes| Ok(into.put(&part.descriptor, &bytes)?));
                if let Err(error) = result {
                    self.parts.entry(digest.clone()).or_default().result = Some(Err(error));
                }
            }
        }
    }

    fn item(&self, own: &ShardEntry) -> ReportItem {
        let entry = &own.entry;
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
        let item = own.item();
        ReportItem {
            status,
            reason: reason.or(item.reason),
            ..item
        }
    }
}

/// The reason of an item whose part failed. For a set of packages, it names the package, and the fix
/// if the repository has replaced it.
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
    let help = if !error.may_be_elsewhere() {
        ""
    } else if is_metadata {
        "; the repository has replaced its metadata since it was locked: pull with the store that \
         locked it (`--store DIR`, or a copy of it), or lock what the repository has now with \
         `landfall lock --refresh`"
    } else {
        "; where the repository has moved on, `landfall lock --refresh` takes what it has now"
    };
    format!("{url}: {why}{help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_fetched_whole_before_the_next_one_begins() {
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
            // a store that wants them in an order of its own
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
