//! The pull: each digest once for the whole run, biggest first, with a lane for manifests.

use crate::http::ErrorKind;
use crate::lock::{Accepted, Lock};
use crate::model::{Digest, trim_index};
use crate::report::{Item, Kind, Progress, Side, Status};
use crate::source::{Entry, From, Part, entries};
use crate::store::{Destination, Lanes, Source, StoreError, TransferError, fetch_wide};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Why a pull stopped before its end. Items that fail do not stop it.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The store or the bundle cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Requests for manifests in flight beside the blobs.
const MANIFEST_LANE: usize = 4;
/// How many places a blob is asked for at, where it stands in several repositories.
const ORIGINS: usize = 4;

/// Brings everything that `lock` names where it belongs. What is there is not asked for again.
///
/// # Errors
/// When that place cannot be used. What fails at the source is an item of the report.
pub async fn pull(
    lock: &Lock,
    source: Arc<dyn Source>,
    into: &Arc<dyn Destination>,
    jobs: usize,
    rehash: bool,
    progress: Arc<dyn Progress>,
) -> Result<Vec<Item>, PullError> {
    let entries = entries(lock);
    let plan = Plan::new(&entries, &**into, rehash)?;
    progress.begin("pull", entries.len() as u64, plan.bytes());
    let mut watch = Watch::new(&entries, &plan);
    let mut outcome = Outcome::of(&plan);
    let (manifests, blobs) = (Arc::new(Semaphore::new(MANIFEST_LANE)), Arc::new(Semaphore::new(jobs)));
    let (all_begun, begun) = tokio::sync::watch::channel(false);
    let lanes = Lanes::new(blobs.clone(), begun);
    let mut tasks = JoinSet::new();
    // two queues, each in its order: the biggest blob begins first, and manifests do not wait for blobs
    let (mut small, mut large) = plan.tasks.into_iter().partition::<VecDeque<_>, _>(Task::is_manifest);
    while !(small.is_empty() && large.is_empty()) {
        for (queue, lane) in [(&mut small, &manifests), (&mut large, &blobs)] {
            while !queue.is_empty()
                && let Ok(slot) = lane.clone().try_acquire_owned()
                && let Some(task) = queue.pop_front()
            {
                let (source, into, progress, lanes) =
                    (source.clone(), into.clone(), progress.clone(), lanes.clone());
                tasks.spawn(async move {
                    let result = fetch_any(&source, &into, &task.parts, &progress, &lanes).await;
                    drop(slot);
                    let digest = task.parts[0].descriptor.digest.clone();
                    if result.is_ok() {
                        into.settled(&digest);
                    }
                    (digest, result)
                });
            }
        }
        if !(small.is_empty() && large.is_empty())
            && let Some(done) = tasks.join_next().await
        {
            watch.settle(done, &mut outcome, &*progress);
        }
    }
    let _ = all_begun.send(true);
    while let Some(done) = tasks.join_next().await {
        watch.settle(done, &mut outcome, &*progress);
    }
    for entry in &entries {
        outcome.compute_trimmed(entry, &**into);
    }
    progress.end();
    let items: Vec<Item> = entries.iter().map(|entry| outcome.item(entry)).collect();
    let whole = entries.iter().zip(&items).filter(|(_, item)| item.status != Status::Failed);
    into.name(&whole.map(|(entry, _)| entry).collect::<Vec<_>>())?;
    Ok(items.into_iter().chain(losses(lock)).collect())
}

/// The losses that a lock carries: what could not be resolved, and what the manifest accepts to be lost
/// until a day.
pub fn losses(lock: &Lock) -> Vec<Item> {
    let today = crate::lock::today();
    let item = |kind, name: &str, status, reason: String| Item {
        kind,
        name: name.into(),
        digest: None,
        bytes: None,
        status,
        reason: Some(reason),
    };
    let unresolved =
        lock.unresolved.iter().map(|lost| item(lost.kind, &lost.name, Status::Missing, lost.cause.clone()));
    let accepted = lock.missing.iter().map(|lost: &Accepted| {
        let status = if lost.until >= today { Status::Skipped } else { Status::Missing };
        item(lost.kind, &lost.name, status, format!("{} (accepted until {})", lost.reason, lost.until))
    });
    unresolved.chain(accepted).collect()
}

/// One digest to fetch, with the places that it can come from.
struct Task {
    parts: Vec<Part>,
}

impl Task {
    fn is_manifest(&self) -> bool {
        self.parts[0].is_manifest()
    }
}

struct Plan {
    tasks: Vec<Task>,
}

impl Plan {
    /// What is not there yet, by rank. What follows from the lock is written at once.
    fn new(entries: &[Entry], into: &dyn Destination, rehash: bool) -> Result<Plan, StoreError> {
        let mut wanted: BTreeMap<&Digest, Vec<&Part>> = BTreeMap::new();
        for part in entries.iter().flat_map(|entry| &entry.parts) {
            if rehash && matches!(part.from, From::Trimmed { .. } | From::Computed(_)) {
                into.holds(&part.descriptor, true)?;
            }
            match &part.from {
                From::Trimmed { .. } => {}
                From::Computed(bytes) => into.take(&part.descriptor, bytes)?,
                _ => wanted.entry(&part.descriptor.digest).or_default().push(part),
            }
        }
        let mut tasks = Vec::new();
        for mut parts in wanted.into_values() {
            if !into.holds(&parts[0].descriptor, rehash)? {
                parts.dedup_by(|a, b| a.from == b.from);
                tasks.push(Task { parts: parts.into_iter().take(ORIGINS).cloned().collect() });
            }
        }
        tasks.sort_by_key(|task| into.rank(&task.parts[0].descriptor));
        Ok(Plan { tasks })
    }

    fn bytes(&self) -> u64 {
        self.tasks.iter().map(|task| task.parts[0].descriptor.size).sum()
    }
}

/// Asks each place in turn; what is wrong at our own side is final.
async fn fetch_any(
    source: &Arc<dyn Source>,
    into: &Arc<dyn Destination>,
    parts: &[Part],
    progress: &Arc<dyn Progress>,
    lanes: &Lanes,
) -> Result<u64, TransferError> {
    let mut first = None;
    for part in parts {
        match fetch_wide(source, into, part, progress, lanes).await {
            Err(error) if error.side == Side::Source => {
                first.get_or_insert(error);
            }
            other => return other,
        }
    }
    match first {
        Some(error) => Err(error),
        None => Ok(0),
    }
}

/// Which entries still wait for which digests, so that an item is shown done when it is.
struct Watch<'a> {
    waiting: HashMap<Digest, Vec<usize>>,
    open: Vec<usize>,
    entries: &'a [Entry],
}

impl<'a> Watch<'a> {
    fn new(entries: &'a [Entry], plan: &Plan) -> Watch<'a> {
        let planned: std::collections::HashSet<&Digest> =
            plan.tasks.iter().map(|task| &task.parts[0].descriptor.digest).collect();
        let mut waiting: HashMap<Digest, Vec<usize>> = HashMap::new();
        let mut open = vec![0; entries.len()];
        for (at, entry) in entries.iter().enumerate() {
            let mut seen = std::collections::HashSet::new();
            for digest in entry.parts.iter().map(|part| &part.descriptor.digest) {
                if planned.contains(digest) && seen.insert(digest) {
                    waiting.entry(digest.clone()).or_default().push(at);
                    open[at] += 1;
                }
            }
        }
        Watch { waiting, open, entries }
    }

    fn settle(
        &mut self,
        done: Result<(Digest, Result<u64, TransferError>), tokio::task::JoinError>,
        outcome: &mut Outcome,
        progress: &dyn Progress,
    ) {
        // a task that panicked stays failed in the outcome
        let Ok((digest, result)) = done else { return };
        for at in self.waiting.remove(&digest).unwrap_or_default() {
            self.open[at] -= 1;
            if self.open[at] == 0 {
                progress.item(&self.entries[at].name);
            }
        }
        outcome.parts.insert(digest, result);
    }
}

struct Outcome {
    parts: HashMap<Digest, Result<u64, TransferError>>,
}

impl Outcome {
    /// Everything planned counts as failed until it is settled.
    fn of(plan: &Plan) -> Outcome {
        let open = |task: &Task| {
            let message = "its transfer ended without a result".to_owned();
            let error = TransferError::new(Side::Source, ErrorKind::Local, message);
            (task.parts[0].descriptor.digest.clone(), Err(error))
        };
        Outcome { parts: plan.tasks.iter().map(open).collect() }
    }

    fn compute_trimmed(&mut self, entry: &Entry, into: &dyn Destination) {
        for part in &entry.parts {
            if let From::Trimmed { of, keep } = &part.from {
                let digest = &part.descriptor.digest;
                if into.holds(&part.descriptor, false).unwrap_or(false) {
                    continue;
                }
                let local = |message: String| TransferError::new(Side::Source, ErrorKind::Invalid, message);
                let result = into
                    .read(of)
                    .map_err(|error| local(error.to_string()))
                    .and_then(|index| trim_index(&index, keep).map_err(|error| local(error.to_string())))
                    .and_then(|bytes| Ok(into.take(&part.descriptor, &bytes)?));
                if let Err(error) = result {
                    self.parts.insert(digest.clone(), Err(error));
                }
            }
        }
    }

    fn item(&self, entry: &Entry) -> Item {
        let mut status = Status::Present;
        let mut reason = None;
        for part in &entry.parts {
            match self.parts.get(&part.descriptor.digest) {
                None => {}
                Some(Ok(1..)) if status == Status::Present => status = Status::Done,
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    status = Status::Failed;
                    reason.get_or_insert_with(|| format!("{}: {}", error.side, error.message));
                }
            }
        }
        let digest = Some(entry.digest.clone());
        Item { kind: entry.kind, name: entry.name.clone(), digest, bytes: Some(entry.size()), status, reason }
    }
}

/// The kinds of items that a lock holds, for messages such as `3 images, 2 files`.
pub fn count_kinds(items: &[Item]) -> String {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    items.iter().for_each(|item| *counts.entry(item.kind).or_default() += 1);
    let words: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if words.is_empty() { "nothing".into() } else { words.join(", ") }
}
