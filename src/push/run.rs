//! Runs a push: look-ups, preflight, deliveries. An item that fails does not stop the others.

use super::error::PushError;
use super::locks;
use super::omitted::{Omitted, PendingDeliveries, locate_omitted};
use super::options::PushOptions;
use super::outcome::{Moved, Pushed, Replaced};
use super::plan::{
    Delivery, LookupScope, TagState, biggest_first, deliveries, look_up_tags, own_deliveries,
};
use super::preflight::Preflight;
use super::problem::{Problem, ProblemKind};
use super::receipt::{Delivered, Receipt};
use super::uploader::Uploader;
use landfall_content::registry::RegistrySessions;
use landfall_content::{LockEntry, PartSource, TransferError, Watchdog, run_concurrently_by_host};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::losses;
use landfall_item::lockfile::{Lock, collision};
use landfall_model::config::IndexPolicy;
use landfall_model::report::{ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::{DestinationMap, Digest, Shard};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// The content of a push.
pub(crate) struct PushContent<'a> {
    /// The source that parts are read from.
    pub(crate) source: Arc<dyn PartSource>,
    /// The blobs that the source omits: the registry must have them.
    pub(crate) omitted: &'a Omitted,
}

/// Delivers the entries of `lock`, or this shard of them, to the destinations of `mapping`. Fails
/// only before the first byte: a delivery that fails later is an item of the report.
pub(crate) async fn push(
    lock: &Lock,
    mapping: &DestinationMap,
    content: PushContent<'_>,
    sessions: &RegistrySessions,
    options: PushOptions,
    shard: Shard,
    progress: Arc<dyn Progress>,
) -> Result<Pushed, PushError> {
    let PushContent { source, omitted } = content;
    if let Some(collision) = collision(mapping, lock) {
        return Err(Box::new(collision).into());
    }
    let session = sessions
        .destination(&mapping.target().registry)
        .await
        .map_err(PushError::Unreachable)?;
    session
        .plain_http_note()
        .into_iter()
        .for_each(|note| sessions.transport().note_once(&note));
    let all = deliveries(lock, mapping);
    let destinations = count_by_entry(&all);
    let deliveries = own_deliveries(all, lock, shard);
    let limits = *sessions.transport().limits();
    let scope = LookupScope {
        parts: options.recheck,
        writes: true,
    };
    let tag_states = look_up_tags(&session, lock, &deliveries, limits.jobs, scope).await;
    // a single failed look-up fails one item, but if all fail, the registry is the problem
    if let (Some(Err(error)), true) = (tag_states.first(), tag_states.iter().all(Result::is_err)) {
        // Harbor refuses requests about a project that does not exist. The preflight reports the
        // project, or creates it.
        let may_lack_project = error.kind == ErrorKind::Denied && session.is_harbor().await;
        if !may_lack_project {
            return Err(PushError::Unreachable(error.clone()));
        }
    }
    let mut uploader = Uploader::new(session, source, progress.clone(), limits, options);
    let mut run = PushRun::new(lock, &deliveries, shard, destinations);
    let mut todo = run.record_tag_states(&tag_states, &uploader).await;
    let omitted = locate_omitted(
        &mut uploader,
        omitted,
        PendingDeliveries {
            lock,
            mapping,
            deliveries: &deliveries,
            todo: &todo,
        },
    )
    .await;
    let uploader = Arc::new(uploader);
    if !todo.is_empty() {
        let (deliveries, tag_states) = (&deliveries[..], &tag_states[..]);
        let preflight = Preflight {
            uploader: &uploader,
            lock,
            deliveries,
            tag_states,
            todo: &todo,
            omitted,
            options,
        };
        let problems = preflight.problems().await;
        todo = run.record_problems(problems, todo, options.all_or_nothing);
    }
    let bytes = bytes_to_send(lock, &deliveries, &todo, &uploader).await;
    run.needed_bytes = bytes;
    if options.dry_run {
        return Ok(run.finish(mapping, &uploader));
    }
    if todo.is_empty() {
        run.unlisted = run.record_lock(mapping, &uploader, options).await;
        return Ok(run.finish(mapping, &uploader));
    }
    progress.begin("push", todo.len() as u64, bytes);
    let part_count = |at: usize| lock.entry(deliveries[at].entry).parts.len() as u64;
    progress.parts(todo.iter().map(|&at| part_count(at)).sum());
    let order = biggest_first(lock, &deliveries, todo);
    let source_hosts: Vec<String> = order
        .iter()
        .map(|&at| source_host(&lock.entry(deliveries[at].entry), &uploader))
        .collect();
    let finished = Mutex::new(Vec::new());
    // Few deliveries run at once, so that many images are complete if the run ends early. The
    // limit is higher than that of uploads, because some deliveries wait for a blob that another
    // one uploads. Deliveries whose content comes from one host do not delay those from another.
    let all_delivered = run_concurrently_by_host(
        order.len(),
        2 * limits.jobs,
        |index| &source_hosts[index],
        async |index| {
            let at = order[index];
            let delivery = deliveries[at].clone();
            let entry = lock.entry(delivery.entry);
            let name = entry.name.clone();
            let uploader = uploader.clone();
            // a task of its own, so that a panic fails only this delivery; in a set, so that it is
            // aborted when the run is cancelled
            let mut task = JoinSet::new();
            task.spawn(async move {
                let repository = &delivery.destination.repository;
                uploader.deliver(&entry, repository, &delivery.tag).await
            });
            let result = task.join_next().await;
            progress.parts_done(part_count(at));
            progress.item(&name);
            if let Some(Ok(result)) = result {
                let mut finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
                finished.push((at, result));
            }
        },
    );
    let mut watchdog = Watchdog::new(sessions.transport().activity().clone(), limits.stuck);
    let stuck = tokio::select! {
        _ = all_delivered => None,
        message = watchdog.wait_until_stuck() => Some(message),
    };
    let finished = finished
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    for (at, result) in finished {
        run.results[at] = Some(result.map(|digest| (ItemStatus::Done, digest)));
        run.note_moved(at, &tag_states[at]);
    }
    progress.end();
    run.fail_unfinished(stuck);
    run.unlisted = run.record_lock(mapping, &uploader, options).await;
    Ok(run.finish(mapping, &uploader))
}

/// The reason of items that could be delivered if others did not stop the push.
const NOT_SENT: &str = "not sent, because others cannot be delivered";

/// The maximum number of bytes that the push uploads: each digest counts once, and not at all if a
/// repository of the registry is known to have it.
async fn bytes_to_send(
    lock: &Lock,
    deliveries: &[Delivery],
    todo: &[usize],
    uploader: &Uploader,
) -> u64 {
    let parts = todo
        .iter()
        .flat_map(|&at| lock.entry(deliveries[at].entry).parts);
    let blobs = parts
        .filter(|part| !part.is_manifest())
        .map(|part| part.descriptor);
    let blobs: HashMap<_, _> = blobs.map(|blob| (blob.digest, blob.size)).collect();
    let mut bytes = 0;
    for (digest, size) in blobs {
        if uploader.blob_locations(&digest).lock().await.is_empty() {
            bytes += size;
        }
    }
    bytes
}

/// The host that has the content of an entry; empty if the content is local.
fn source_host(entry: &LockEntry, uploader: &Uploader) -> String {
    entry
        .parts
        .last()
        .map_or("", |top| uploader.source.host(top))
        .to_owned()
}

/// The number of these deliveries that each entry has.
fn count_by_entry(deliveries: &[Delivery]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    deliveries
        .iter()
        .for_each(|delivery| *counts.entry(delivery.entry).or_default() += 1);
    counts
}

/// The state of a push and of each delivery.
struct PushRun<'a> {
    lock: &'a Lock,
    deliveries: &'a [Delivery],
    shard: Shard,
    /// The number of destinations of each entry, including those of other shards.
    destinations: BTreeMap<usize, usize>,
    /// The result of each delivery; `None` while it is pending.
    results: Vec<Option<Result<(ItemStatus, Digest), TransferError>>>,
    problems: Vec<Problem>,
    moved: Vec<Moved>,
    needed_bytes: u64,
    unlisted: Option<String>,
}

impl<'a> PushRun<'a> {
    fn new(
        lock: &'a Lock,
        deliveries: &'a [Delivery],
        shard: Shard,
        destinations: BTreeMap<usize, usize>,
    ) -> PushRun<'a> {
        let results = vec![None; deliveries.len()];
        PushRun {
            lock,
            deliveries,
            shard,
            destinations,
            results,
            problems: Vec::new(),
            moved: Vec::new(),
            needed_bytes: 0,
            unlisted: None,
        }
    }

    /// Records deliveries that are present, and those whose look-up failed. Returns the others,
    /// including those whose look-up was denied: the preflight finds out why.
    async fn record_tag_states(
        &mut self,
        tag_states: &[Result<TagState, HttpError>],
        uploader: &Uploader,
    ) -> Vec<usize> {
        let mut todo = Vec::new();
        for (at, (delivery, tag_state)) in self.deliveries.iter().zip(tag_states).enumerate() {
            let entry = &self.lock.entry(delivery.entry);
            let present = match tag_state {
                Ok(TagState::Whole) => Some(entry.top.digest.clone()),
                // with `index: exact`, the site does not accept a trimmed index
                Ok(TagState::Trimmed) if uploader.index == IndexPolicy::Trimmed => {
                    entry.trimmed().map(|part| part.descriptor.digest.clone())
                }
                Err(error) if error.kind != ErrorKind::Denied => {
                    self.results[at] = Some(Err(TransferError::destination(error.clone())));
                    continue;
                }
                _ => None,
            };
            match present {
                Some(digest) => {
                    self.results[at] = Some(Ok((ItemStatus::Present, digest)));
                    uploader
                        .note_present_entry(entry, &delivery.destination.repository)
                        .await;
                }
                None => todo.push(at),
            }
        }
        todo
    }

    /// Fails the deliveries that a problem stops, or all of them if a problem stops the push.
    /// Returns the deliveries that are still to be made.
    fn record_problems(
        &mut self,
        problems: Vec<Problem>,
        mut todo: Vec<usize>,
        all_or_nothing: bool,
    ) -> Vec<usize> {
        for problem in &problems {
            // blobs that a delta omits and no source has are a problem of the bundle
            let side = if problem.kind == ProblemKind::Content {
                TransferSide::Source
            } else {
                TransferSide::Destination
            };
            for &at in &problem.stops {
                self.results[at].get_or_insert_with(|| Err(invalid_error(side, &problem.message)));
            }
        }
        let is_stopped = problems
            .iter()
            .any(|problem| problem.stops_all(all_or_nothing));
        self.problems = problems;
        if is_stopped {
            for at in std::mem::take(&mut todo) {
                self.results[at]
                    .get_or_insert_with(|| Err(invalid_error(TransferSide::Destination, NOT_SENT)));
            }
        }
        todo.retain(|&at| self.results[at].is_none());
        todo
    }

    /// Adds the lock to the registry's list of locks if anything was delivered. Only the first
    /// shard does this, because the list is written as a whole. Returns a message if that fails.
    async fn record_lock(
        &self,
        mapping: &DestinationMap,
        uploader: &Uploader,
        options: PushOptions,
    ) -> Option<String> {
        if !self.shard.is_first() || !self.results.iter().flatten().any(Result::is_ok) {
            return None;
        }
        locks::record_lock(uploader, self.lock, mapping, options).await
    }

    fn note_moved(&mut self, at: usize, tag_state: &Result<TagState, HttpError>) {
        if let (Some(Ok((_, to))), Ok(TagState::Other(from))) = (&self.results[at], tag_state) {
            let delivery = &self.deliveries[at];
            self.moved.push(Moved {
                at: format!("{}:{}", delivery.destination.repository, delivery.tag),
                from: from.clone(),
                to: to.clone(),
            });
        }
    }

    /// Fails the deliveries without a result: those of a run that is stuck, or whose task panicked.
    fn fail_unfinished(&mut self, stuck: Option<String>) {
        let message = stuck.unwrap_or_else(|| "its delivery ended without a result".to_owned());
        for result in self.results.iter_mut().filter(|result| result.is_none()) {
            let message = message.clone();
            *result = Some(Err(TransferError::new(
                TransferSide::Destination,
                ErrorKind::Local,
                message,
            )));
        }
    }

    /// The items that this shard reports: those with a delivery of its own, or all if it is the
    /// only shard.
    fn own_items(&self, items: Vec<ReportItem>) -> Vec<ReportItem> {
        if self.shard.is_only() {
            return items;
        }
        let own = count_by_entry(self.deliveries);
        let own_items = items.into_iter().enumerate().filter_map(|(at, mut item)| {
            let (own, all) = (own.get(&at)?, self.destinations.get(&at)?);
            if own < all {
                item.reason.get_or_insert_with(|| {
                    format!("{own} of its {all} destinations; other shards have the rest")
                });
            }
            Some(item)
        });
        own_items.collect()
    }

    /// Turns the results of the deliveries into one report item for each entry, and the receipt.
    fn finish(self, mapping: &DestinationMap, uploader: &Uploader) -> Pushed {
        let lock = self.lock;
        let mut items: Vec<ReportItem> = lock.each_entry().map(|entry| entry.item()).collect();
        let mut replaced = Vec::new();
        let mut delivered = Vec::new();
        for (delivery, result) in self.deliveries.iter().zip(&self.results) {
            let entry = lock.entry(delivery.entry);
            let item = &mut items[delivery.entry];
            match result {
                Some(Ok((status, digest))) => {
                    // an entry is new if any of its destinations is, unless one failed
                    if *status == ItemStatus::Done && item.status == ItemStatus::Present {
                        item.status = ItemStatus::Done;
                    }
                    let changed = *digest != entry.top.digest;
                    let change = Replaced {
                        name: entry.name.clone(),
                        from: entry.top.digest.clone(),
                        to: digest.clone(),
                    };
                    if changed && !replaced.contains(&change) {
                        replaced.push(change);
                    }
                    delivered.push(Delivered {
                        name: entry.name.clone(),
                        at: format!("{}:{}", delivery.destination.repository, delivery.tag),
                        digest: digest.clone(),
                        trimmed_from: changed.then(|| entry.top.digest.clone()),
                    });
                }
                Some(Err(error)) => {
                    item.status = ItemStatus::Failed;
                    item.reason
                        .get_or_insert_with(|| format!("{}: {error}", error.side));
                }
                // only a dry run leaves deliveries without a result
                None if item.status != ItemStatus::Failed => {
                    item.status = ItemStatus::Skipped;
                    let target = format!("{}:{}", delivery.destination, delivery.tag);
                    item.reason = Some(match item.reason.take() {
                        Some(others) => format!("{others} and {target}"),
                        None => format!("would go to {target}"),
                    });
                }
                None => {}
            }
        }
        let mut items = self.own_items(items);
        if self.shard.is_first() {
            items.extend(losses(lock));
        }
        let receipt = Receipt {
            series: BTreeMap::new(),
            version: 1,
            registry: mapping.target().registry.clone(),
            lock: lock.fingerprint(),
            items: delivered,
            blobs: uploader.take_blob_locations(),
            pruned: Vec::new(),
        };
        let (needed_bytes, unlisted) = (self.needed_bytes, self.unlisted);
        let mut moved = self.moved;
        moved.sort_by(|a, b| a.at.cmp(&b.at));
        Pushed {
            items,
            problems: self.problems,
            moved,
            trimmed: replaced,
            unlisted,
            needed_bytes,
            receipt,
        }
    }
}

fn invalid_error(side: TransferSide, message: &str) -> TransferError {
    TransferError::new(side, ErrorKind::Invalid, message)
}
