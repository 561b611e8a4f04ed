//! The push: preflight, then image after image; one bad item does not stop the others.

use super::deliver::Carrier;
use super::left_out::{self, LeftOut};
use super::plan::{Delivery, Standing, deliveries, standings, trimmed};
use super::preflight::{Preflight, Problem, ProblemKind};
use super::receipt::{Delivered, Receipt};
use crate::config::IndexPolicy;
use crate::content::{Source, TransferError};
use crate::http::{Error, ErrorKind};
use crate::item::{Collision, collision};
use crate::item::{each, entry};
use crate::lockfile::Lock;
use crate::model::Digest;
use crate::model::Mapping;
use crate::pull::losses;
use crate::registry::Sessions;
use crate::report::{Item, Progress, Side, Status};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How to push.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Blobs in flight, and images in delivery: few, so that what is there is whole when it ends early.
    pub jobs: usize,
    /// Replace tags that stand at another digest.
    pub move_tags: bool,
    /// Ask what stands there, and send nothing.
    pub dry_run: bool,
    /// Make the Harbor projects that are missing.
    pub create_projects: bool,
    /// What to do where the registry refuses an index with missing children.
    pub index: IndexPolicy,
}

/// What came of a push.
#[derive(Debug)]
pub struct Pushed {
    /// One item for each entry of the lock, and its losses.
    pub items: Vec<Item>,
    /// What is in the way. Where there is something, nothing was sent.
    pub problems: Vec<Problem>,
    /// Tags that stood at another digest, and were replaced.
    pub moved: Vec<Moved>,
    /// Indexes that were replaced by their trimmed form.
    pub trimmed: Vec<Replaced>,
    /// What stands there now.
    pub receipt: Receipt,
}

/// An index that stands at the far side in its trimmed form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// The name in the lock.
    pub name: String,
    /// The digest of the lock.
    pub from: Digest,
    /// The digest of the trimmed index.
    pub to: Digest,
}

/// A tag that stood at another digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that it stood at.
    pub from: Digest,
    /// The digest of the lock.
    pub to: Digest,
}

/// Why a push could not begin.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Two digests would get one name.
    #[error(transparent)]
    Collision(#[from] Box<Collision>),
    /// The registry cannot be reached at all.
    #[error("{0}")]
    Unreachable(Error),
}

/// Brings everything of `lock` from `source` to the destinations of `mapping`. What is `left_out` of `source`
/// must stand at the registry.
///
/// # Errors
/// What stops it before the first byte. What fails later is an item of the report.
pub async fn push(
    lock: &Lock,
    mapping: &Mapping,
    (source, left_out): (Arc<dyn Source>, &LeftOut),
    sessions: &Sessions,
    options: Options,
    progress: Arc<dyn Progress>,
) -> Result<Pushed, PushError> {
    if let Some(collision) = collision(mapping, lock) {
        return Err(Box::new(collision).into());
    }
    let session = sessions.destination(&mapping.target().registry).await.map_err(PushError::Unreachable)?;
    let deliveries = deliveries(lock, mapping);
    let standings = standings(&session, lock, &deliveries, options.jobs).await;
    if let (Some(Err(error)), true) = (standings.first(), standings.iter().all(Result::is_err)) {
        // Harbor refuses what is about a project that it has not
        let harbor = error.kind == ErrorKind::Denied && session.is_harbor().await;
        if !harbor {
            return Err(PushError::Unreachable(error.clone()));
        }
    }
    let limits = *sessions.transport().limits();
    let mut carrier = Carrier::new(session, source, progress.clone(), limits, options.jobs, options.index);
    carrier.move_tags = options.move_tags;
    let mut run = Run::new(lock, &deliveries);
    let mut todo = run.settle_standing(&standings, &carrier, options.index).await;
    let lacks = left_out::find(&mut carrier, left_out, (lock, &deliveries, &todo), options.jobs).await;
    let carrier = Arc::new(carrier);
    if !todo.is_empty() {
        let (deliveries, standings) = (&deliveries[..], &standings[..]);
        let preflight =
            Preflight { carrier: &carrier, lock, deliveries, standings, todo: &todo, lacks, options };
        let problems = preflight.problems().await;
        todo = run.settle_problems(problems, todo);
    }
    if options.dry_run || !run.problems.is_empty() {
        return Ok(run.finish(mapping, &carrier));
    }
    let bytes = unique_bytes(lock, &deliveries, &todo);
    progress.begin("push", todo.len() as u64, bytes);
    let mut tasks = tokio::task::JoinSet::new();
    let mut queue = todo.into_iter();
    loop {
        while tasks.len() < options.jobs.max(1) {
            let Some(at) = queue.next() else { break };
            let delivery = deliveries[at].clone();
            let (carrier, entry) = (carrier.clone(), entry(lock, delivery.entry));
            tasks.spawn(async move {
                (at, carrier.deliver(&entry, &delivery.place.repository, &delivery.tag).await)
            });
        }
        let Some(done) = tasks.join_next().await else { break };
        // a task that panicked leaves its result open, which counts as failed
        if let Ok((at, result)) = done {
            progress.item(&entry(lock, deliveries[at].entry).name);
            run.results[at] = Some(result.map(|digest| (Status::Done, digest)));
            run.note_moved(at, &standings[at]);
        }
    }
    progress.end();
    run.settle_open();
    Ok(run.finish(mapping, &carrier))
}

/// Why what could be delivered is not.
const NOT_SENT: &str = "not sent, because others cannot be delivered";

/// What is to be sent at the most: each digest once, less what stands at the registry already.
fn unique_bytes(lock: &Lock, deliveries: &[Delivery], todo: &[usize]) -> u64 {
    let blobs = |at: usize| {
        let parts = entry(lock, deliveries[at].entry).parts.into_iter();
        parts.filter(|part| !part.is_manifest()).map(|part| (part.descriptor.digest, part.descriptor.size))
    };
    let standing = (0..deliveries.len()).filter(|at| !todo.contains(at));
    let standing: HashSet<_> = standing.flat_map(|at| blobs(at).map(|(digest, _)| digest)).collect();
    let wanted = todo.iter().flat_map(|&at| blobs(at));
    wanted.filter(|(digest, _)| !standing.contains(digest)).collect::<HashMap<_, _>>().values().sum()
}

struct Run<'a> {
    lock: &'a Lock,
    deliveries: &'a [Delivery],
    results: Vec<Option<Result<(Status, Digest), TransferError>>>,
    problems: Vec<Problem>,
    moved: Vec<Moved>,
}

impl<'a> Run<'a> {
    fn new(lock: &'a Lock, deliveries: &'a [Delivery]) -> Run<'a> {
        let results = vec![None; deliveries.len()];
        Run { lock, deliveries, results, problems: Vec::new(), moved: Vec::new() }
    }

    /// What stands already is done, what could not be asked for failed. Gives the rest, what this account
    /// may not ask for included: the preflight will tell why.
    async fn settle_standing(
        &mut self,
        standings: &[Result<Standing, Error>],
        carrier: &Carrier,
        index: IndexPolicy,
    ) -> Vec<usize> {
        let mut todo = Vec::new();
        for (at, (delivery, standing)) in self.deliveries.iter().zip(standings).enumerate() {
            let entry = &entry(self.lock, delivery.entry);
            let present = match standing {
                Ok(Standing::Whole) => Some(entry.top.digest.clone()),
                Ok(Standing::Trimmed) if index == IndexPolicy::Trimmed => {
                    trimmed(entry).map(|part| part.descriptor.digest.clone())
                }
                Err(error) if error.kind != ErrorKind::Denied => {
                    self.results[at] = Some(Err(TransferError::destination(error.clone())));
                    continue;
                }
                _ => None,
            };
            match present {
                Some(digest) => {
                    self.results[at] = Some(Ok((Status::Present, digest)));
                    carrier.stands(entry, &delivery.place.repository).await;
                }
                None => todo.push(at),
            }
        }
        todo
    }

    /// With problems nothing is delivered: what they stop failed by them, and the rest was not sent.
    fn settle_problems(&mut self, problems: Vec<Problem>, todo: Vec<usize>) -> Vec<usize> {
        let refused = |side, message: &str| TransferError::new(side, ErrorKind::Invalid, message);
        for problem in &problems {
            let side = if problem.kind == ProblemKind::Content { Side::Source } else { Side::Destination };
            for &at in &problem.stops {
                self.results[at].get_or_insert_with(|| Err(refused(side, &problem.message)));
            }
        }
        self.problems = problems;
        if self.problems.is_empty() {
            return todo;
        }
        for at in todo {
            self.results[at].get_or_insert_with(|| Err(refused(Side::Destination, NOT_SENT)));
        }
        Vec::new()
    }

    fn note_moved(&mut self, at: usize, standing: &Result<Standing, Error>) {
        if let (Some(Ok((_, to))), Ok(Standing::Other(from))) = (&self.results[at], standing) {
            let delivery = &self.deliveries[at];
            let place = format!("{}:{}", delivery.place.repository, delivery.tag);
            self.moved.push(Moved { at: place, from: from.clone(), to: to.clone() });
        }
    }

    fn settle_open(&mut self) {
        for result in self.results.iter_mut().filter(|result| result.is_none()) {
            let message = "its delivery ended without a result".to_owned();
            *result = Some(Err(TransferError::new(Side::Destination, ErrorKind::Local, message)));
        }
    }

    fn finish(self, mapping: &Mapping, carrier: &Carrier) -> Pushed {
        let lock = self.lock;
        let mut items: Vec<Item> = each(lock).map(|entry| entry.item()).collect();
        let mut replaced = Vec::new();
        let mut delivered = Vec::new();
        for (delivery, result) in self.deliveries.iter().zip(&self.results) {
            let entry = entry(lock, delivery.entry);
            let item = &mut items[delivery.entry];
            match result {
                Some(Ok((status, digest))) => {
                    if *status == Status::Done && item.status == Status::Present {
                        item.status = Status::Done;
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
                        at: format!("{}:{}", delivery.place.repository, delivery.tag),
                        digest: digest.clone(),
                        trimmed_from: changed.then(|| entry.top.digest.clone()),
                    });
                }
                Some(Err(error)) => {
                    item.status = Status::Failed;
                    item.reason.get_or_insert_with(|| format!("{}: {error}", error.side));
                }
                None if item.status != Status::Failed => {
                    item.status = Status::Skipped;
                    let place = format!("{}:{}", delivery.place, delivery.tag);
                    item.reason = Some(match item.reason.take() {
                        Some(others) => format!("{others} and {place}"),
                        None => format!("would go to {place}"),
                    });
                }
                None => {}
            }
        }
        items.extend(losses(lock));
        let receipt = Receipt {
            version: 1,
            registry: mapping.target().registry.clone(),
            lock: lock.fingerprint(),
            items: delivered,
            blobs: carrier.take_places(),
        };
        let mut moved = self.moved;
        moved.sort_by(|a, b| a.at.cmp(&b.at));
        Pushed { items, problems: self.problems, moved, trimmed: replaced, receipt }
    }
}
