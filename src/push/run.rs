//! The push: preflight, then image after image; one bad item does not stop the others.

use super::deliver::Carrier;
use super::plan::{Delivery, Standing, deliveries, standings, trimmed};
use super::receipt::{Delivered, Receipt};
use crate::http::{Error, ErrorKind};
use crate::lock::Lock;
use crate::model::Digest;
use crate::pull::losses;
use crate::registry::Sessions;
use crate::report::{Item, Progress, Side, Status};
use crate::rewrite::{Collision, Mapping};
use crate::site::IndexPolicy;
use crate::source::Entry;
use crate::store::{Source, TransferError};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How to push.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Blobs in flight.
    pub jobs: usize,
    /// Replace tags that stand at another digest.
    pub move_tags: bool,
    /// Ask what stands there, and send nothing.
    pub dry_run: bool,
    /// What to do where the registry refuses an index with missing children.
    pub index: IndexPolicy,
}

/// What came of a push.
#[derive(Debug)]
pub struct Pushed {
    /// One item for each entry of the lock, and its losses.
    pub items: Vec<Item>,
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

/// Why a push stopped before the first byte.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Two digests would get one name.
    #[error(transparent)]
    Collision(#[from] Box<Collision>),
    /// The registry cannot be reached at all.
    #[error("{0}")]
    Unreachable(Error),
    /// The site says `index: exact`, and the registry refuses indexes with missing children.
    #[error(
        "the registry refuses an index with missing children, and the site says `index: exact`: {0}; lock all \
         platforms of it, or allow the trimmed index"
    )]
    Sparse(String),
    /// The question whether it does could not be asked.
    #[error(transparent)]
    Probe(#[from] TransferError),
}

/// Images in delivery at once. Blobs have their own bound.
const IMAGES: usize = 8;

/// Brings everything of `lock` from `source` to the destinations of `mapping`.
///
/// # Errors
/// What stops it before the first byte. What fails later is an item of the report.
pub async fn push(
    lock: &Lock,
    mapping: &Mapping,
    source: Arc<dyn Source>,
    sessions: &Sessions,
    options: Options,
    progress: Arc<dyn Progress>,
) -> Result<Pushed, PushError> {
    if let Some(collision) = mapping.collision(lock) {
        return Err(Box::new(collision).into());
    }
    let session = sessions.destination(&mapping.target().registry).await.map_err(PushError::Unreachable)?;
    let (entries, deliveries) = deliveries(lock, mapping);
    let standings = standings(&session, &entries, &deliveries, options.jobs).await;
    if let (Some(Err(error)), true) = (standings.first(), standings.iter().all(Result::is_err)) {
        return Err(PushError::Unreachable(error.clone()));
    }
    let mut carrier = Carrier::new(session, source, progress.clone(), options.jobs, options.index);
    carrier.move_tags = options.move_tags;
    let carrier = Arc::new(carrier);
    let mut run = Run { entries: &entries, deliveries: &deliveries, results: vec![None; deliveries.len()] };
    let mut todo = Vec::new();
    for (at, (delivery, standing)) in deliveries.iter().zip(standings).enumerate() {
        let entry = &entries[delivery.entry];
        run.results[at] = match standing {
            Ok(Standing::Whole) => Some(Ok((Status::Present, entry.top.digest.clone()))),
            Ok(Standing::Trimmed) if options.index == IndexPolicy::Trimmed => {
                trimmed(entry).map(|part| Ok((Status::Present, part.descriptor.digest.clone())))
            }
            Ok(Standing::Other(digest)) if !options.move_tags => {
                Some(Err(stands_elsewhere(delivery, &digest)))
            }
            Err(error) => Some(Err(TransferError::destination(error))),
            Ok(_) => None,
        };
        match &run.results[at] {
            Some(Ok(_)) => carrier.stands(entry, &delivery.place.repository).await,
            Some(Err(_)) => {}
            None => todo.push(at),
        }
    }
    if options.dry_run {
        return Ok(run.finish(lock, mapping, &carrier));
    }
    if options.index == IndexPolicy::Exact {
        refuse_sparse(&carrier, &entries, &deliveries, &todo).await?;
    }
    let bytes = unique_bytes(&entries, &deliveries, &todo);
    progress.begin("push", todo.len() as u64, bytes);
    let mut tasks = tokio::task::JoinSet::new();
    let mut queue = todo.into_iter();
    loop {
        while tasks.len() < IMAGES {
            let Some(at) = queue.next() else { break };
            let delivery = deliveries[at].clone();
            let (carrier, entry) = (carrier.clone(), entries[delivery.entry].clone());
            tasks.spawn(async move {
                (at, carrier.deliver(&entry, &delivery.place.repository, &delivery.tag).await)
            });
        }
        let Some(done) = tasks.join_next().await else { break };
        // a task that panicked leaves its result open, which counts as failed
        if let Ok((at, result)) = done {
            progress.item(&entries[deliveries[at].entry].name);
            run.results[at] = Some(result.map(|digest| (Status::Done, digest)));
        }
    }
    progress.end();
    run.settle_open();
    Ok(run.finish(lock, mapping, &carrier))
}

fn stands_elsewhere(delivery: &Delivery, digest: &Digest) -> TransferError {
    let message =
        format!("{}:{} stands at {digest} already; --move-tags replaces it", delivery.place, delivery.tag);
    TransferError::new(Side::Destination, ErrorKind::Invalid, message)
}

async fn refuse_sparse(
    carrier: &Arc<Carrier>,
    entries: &[Entry],
    deliveries: &[Delivery],
    todo: &[usize],
) -> Result<(), PushError> {
    let sparse =
        todo.iter().map(|&at| &deliveries[at]).find(|delivery| trimmed(&entries[delivery.entry]).is_some());
    let Some(delivery) = sparse else { return Ok(()) };
    let entry = &entries[delivery.entry];
    match carrier.takes_sparse(entry, &delivery.place.repository).await? {
        true => Ok(()),
        false => Err(PushError::Sparse(entry.name.clone())),
    }
}

/// What is to be sent at the most: each digest once, less what stands at the registry already.
fn unique_bytes(entries: &[Entry], deliveries: &[Delivery], todo: &[usize]) -> u64 {
    let blobs = |at: &usize| entries[deliveries[*at].entry].parts.iter().filter(|part| !part.is_manifest());
    let standing = (0..deliveries.len()).filter(|at| !todo.contains(at));
    let standing: HashSet<_> =
        standing.flat_map(|at| blobs(&at).map(|part| &part.descriptor.digest).collect::<Vec<_>>()).collect();
    let wanted = todo.iter().flat_map(blobs).map(|part| (&part.descriptor.digest, part.descriptor.size));
    wanted.filter(|(digest, _)| !standing.contains(digest)).collect::<HashMap<_, _>>().values().sum()
}

struct Run<'a> {
    entries: &'a [Entry],
    deliveries: &'a [Delivery],
    results: Vec<Option<Result<(Status, Digest), TransferError>>>,
}

impl Run<'_> {
    fn settle_open(&mut self) {
        for result in self.results.iter_mut().filter(|result| result.is_none()) {
            let message = "its delivery ended without a result".to_owned();
            *result = Some(Err(TransferError::new(Side::Destination, ErrorKind::Local, message)));
        }
    }

    fn finish(self, lock: &Lock, mapping: &Mapping, carrier: &Carrier) -> Pushed {
        let mut items: Vec<Item> = self
            .entries
            .iter()
            .map(|entry| {
                let digest = Some(entry.digest.clone());
                Item {
                    kind: entry.kind,
                    name: entry.name.clone(),
                    digest,
                    bytes: Some(entry.size()),
                    status: Status::Present,
                    reason: None,
                }
            })
            .collect();
        let mut replaced = Vec::new();
        let mut delivered = Vec::new();
        for (delivery, result) in self.deliveries.iter().zip(&self.results) {
            let entry = &self.entries[delivery.entry];
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
                    item.reason.get_or_insert_with(|| format!("{}: {}", error.side, error.message));
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
            blobs: carrier.known_places().into_iter().collect(),
        };
        Pushed { items, trimmed: replaced, receipt }
    }
}
