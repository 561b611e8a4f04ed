//! One big blob over several connections, where others stand idle: at the end of a run.
//!
//! The first connection goes in order, and hashes. A helper takes the second half of what the busiest of
//! the others has before it, so that all end at about the same time; it asks for the rest of the blob and
//! hangs up where the next part begins. What helpers bring is written where it belongs, recorded in a
//! journal, and hashed when the first connection comes there.

use crate::content::range_plan::{Next, Plan};
use crate::content::transfer::{blocking, fetch};
use crate::content::{Origin, Part};
use crate::content::{PartialBlob, Sink, Source, TransferError, Writer};
use crate::http::{ErrorKind, backoff};
use crate::report::{Progress, Side};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// How many helpers may fail before no more are sent.
const FAILURES: u32 = 4;

/// IdleSlots of a run that stand idle near its end.
#[derive(Debug, Clone)]
pub struct IdleSlots {
    free: Arc<Semaphore>,
    all_begun: watch::Receiver<bool>,
    /// Whether a place honours `Range`, as far as it was seen in this run.
    ranges: Arc<Mutex<HashMap<String, bool>>>,
}

impl IdleSlots {
    /// `free` has one permit for each transfer that may be under way; `all_begun` turns true when each of
    /// the run has begun.
    pub fn new(free: Arc<Semaphore>, all_begun: watch::Receiver<bool>) -> IdleSlots {
        IdleSlots { free, all_begun, ranges: Arc::default() }
    }

    /// The next idle lane.
    async fn next(&self) -> OwnedSemaphorePermit {
        let mut all_begun = self.all_begun.clone();
        if all_begun.wait_for(|begun| *begun).await.is_ok()
            && let Ok(permit) = self.free.clone().acquire_owned().await
        {
            return permit;
        }
        std::future::pending().await
    }
}

/// Brings one part where it belongs as [`fetch`] does, a big one with helpers on idle `lanes`.
///
/// # Errors
/// Which side failed, after all attempts.
pub async fn fetch_parallel(
    source: &Arc<dyn Source>,
    into: &Arc<dyn Sink>,
    part: &Part,
    progress: &Arc<dyn Progress>,
    lanes: &IdleSlots,
) -> Result<u64, TransferError> {
    let limits = source.limits();
    if part.descriptor.size < limits.wide {
        return fetch(&**source, into, part, &**progress).await;
    }
    let (mut received, mut failures) = (0, 0);
    loop {
        let (to, descriptor) = (into.clone(), part.descriptor.clone());
        let begun = blocking(move || to.begin(&descriptor, true)).await?;
        let Some((writer, islands)) = begun else { return Ok(received) };
        let crew = Arc::new(Crew {
            source: source.clone(),
            part: part.clone(),
            step: limits.wide_step,
            progress: progress.clone(),
            ground: writer.ground(),
            plan: Mutex::new(Plan::new(part.descriptor.size, writer.offset(), islands, limits.wide_share)),
            moved: Notify::new(),
            news: Notify::new(),
            received: AtomicU64::new(0),
            failures: AtomicU32::new(0),
        });
        let result = crew.fetch(writer, lanes).await;
        let new = crew.received.load(Ordering::Relaxed);
        received += new;
        match result {
            Ok(()) => return Ok(received),
            Err(error) if error.kind == ErrorKind::Network => {
                failures = if new > 0 { 0 } else { failures + 1 };
                if failures >= limits.attempts {
                    return Err(error);
                }
                if new == 0 {
                    tokio::time::sleep(backoff(failures, limits.backoff, limits.backoff_most)).await;
                }
            }
            // wrong bytes, or no ranges: once more, in order
            Err(error) if error.kind == ErrorKind::Invalid && error.side == Side::Source => break,
            Err(error) => return Err(error),
        }
    }
    Ok(received + fetch(&**source, into, part, &**progress).await?)
}

/// All who work at one blob.
struct Crew {
    source: Arc<dyn Source>,
    part: Part,
    /// How much is written between two lines of the journal, in bytes.
    step: u64,
    progress: Arc<dyn Progress>,
    ground: Arc<dyn PartialBlob>,
    plan: Mutex<Plan>,
    /// A helper came to its end.
    moved: Notify,
    /// The first connection has work that can be shared, or it was learned whether ranges are honoured.
    news: Notify,
    received: AtomicU64,
    failures: AtomicU32,
}

impl Crew {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is lost of the journal is fetched again, no more.
    fn record(&self, from: u64, to: u64) {
        let _ = self.ground.record((from, to));
    }

    fn came(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.progress.bytes(bytes as u64);
    }

    async fn fetch(self: &Arc<Self>, writer: Writer, lanes: &IdleSlots) -> Result<(), TransferError> {
        let place = place(&self.part);
        let mut helpers = JoinSet::new();
        let mut first = std::pin::pin!(self.in_order(writer));
        let result = loop {
            let known = lanes.ranges.lock().ok().and_then(|ranges| ranges.get(&place).copied());
            // the first helper finds out whether ranges are honoured
            let useful =
                known.unwrap_or(helpers.is_empty()) && self.failures.load(Ordering::Relaxed) < FAILURES;
            let wanted = useful && self.plan().share().is_some();
            tokio::select! {
                result = &mut first => break result,
                lane = lanes.next(), if wanted => {
                    let (crew, ranges, place) = (self.clone(), lanes.ranges.clone(), place.clone());
                    helpers.spawn(async move {
                        let learn = |honoured| {
                            if let Ok(mut ranges) = ranges.lock() {
                                ranges.insert(place.clone(), honoured);
                            }
                            crew.news.notify_one();
                        };
                        crew.help(learn).await;
                        drop(lane);
                    });
                }
                Some(_) = helpers.join_next(), if !helpers.is_empty() => {}
                () = self.news.notified() => {}
            }
        };
        // they hold the file, and so its lock
        helpers.shutdown().await;
        let writer = result?;
        blocking(move || writer.commit()).await
    }

    /// The first connection: everything in order, what helpers brought included.
    async fn in_order(&self, mut writer: Writer) -> Result<Writer, TransferError> {
        while writer.offset() < self.part.descriptor.size {
            let next = self.plan().next(writer.offset());
            match next {
                Next::Wait => self.moved.notified().await,
                Next::Absorb(end) => {
                    writer = blocking(move || writer.absorb(end).map(|()| writer)).await?;
                    self.record(0, writer.offset());
                }
                Next::Fetch => {
                    self.news.notify_one();
                    self.pump(&mut writer).await?;
                }
            }
        }
        Ok(writer)
    }

    async fn pump(&self, writer: &mut Writer) -> Result<(), TransferError> {
        let (start, mut stream) =
            self.source.open(&self.part, writer.offset()).await.map_err(TransferError::source)?;
        if start != writer.offset() {
            let message = format!("{}: its host honours no ranges", self.part.descriptor.digest);
            return Err(TransferError::new(Side::Source, ErrorKind::Invalid, message));
        }
        let mut recorded = writer.offset();
        loop {
            let end = self.plan().first.1;
            if writer.offset() >= end {
                return Ok(());
            }
            let Some(bytes) = stream.next().await else {
                let message = format!(
                    "{}: the answer ended after {} bytes",
                    self.part.descriptor.digest,
                    writer.offset()
                );
                return Err(TransferError::new(Side::Source, ErrorKind::Network, message));
            };
            let bytes = bytes.map_err(TransferError::source)?;
            let end = self.plan().first.1;
            let piece = &bytes[..bytes
                .len()
                .min(usize::try_from(end.saturating_sub(writer.offset())).unwrap_or(usize::MAX))];
            writer.write(piece)?;
            self.came(piece.len());
            self.plan().first_at(writer.offset());
            if writer.offset() - recorded >= self.step {
                recorded = writer.offset();
                self.record(0, recorded);
            }
        }
    }

    /// A helper: takes a share, and brings it where it belongs.
    async fn help(&self, learn: impl Fn(bool)) {
        let Some((helper, from)) = self.plan().take() else { return };
        let brought = self.bring(helper, from, learn).await;
        if brought.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.plan().end(helper);
        self.moved.notify_one();
    }

    async fn bring(&self, helper: u64, from: u64, learn: impl Fn(bool)) -> Result<(), TransferError> {
        let (start, mut stream) = self.source.open(&self.part, from).await.map_err(TransferError::source)?;
        learn(start == from);
        if start != from {
            return Ok(());
        }
        let (mut at, mut recorded) = (from, from);
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(TransferError::source)?;
            let end = self.plan().helpers.get(&helper).map_or(at, |work| work.end);
            let piece =
                &bytes[..bytes.len().min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX))];
            self.ground.write(piece, at)?;
            self.came(piece.len());
            at += piece.len() as u64;
            if at - recorded >= self.step || at >= end {
                self.record(recorded, at);
                recorded = at;
            }
            self.plan().helper_at(helper, at);
            if at >= end {
                return Ok(());
            }
        }
        let message = format!("{}: the answer ended after {at} bytes", self.part.descriptor.digest);
        Err(TransferError::new(Side::Source, ErrorKind::Network, message))
    }
}

/// Where a part comes from, as far as that matters for ranges.
fn place(part: &Part) -> String {
    match &part.from {
        Origin::Blob { registry, .. }
        | Origin::Manifest { registry, .. }
        | Origin::Foreign { registry, .. } => registry.to_string(),
        Origin::Url(url) => url.split('/').nth(2).unwrap_or(url).to_owned(),
        Origin::Computed(_) | Origin::Trimmed { .. } => String::new(),
    }
}
