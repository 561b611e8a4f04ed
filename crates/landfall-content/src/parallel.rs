//! Parallel fetch: one big blob over several connections, near the end of a run, when slots are
//! idle.
//!
//! The first connection reads in order, and hashes. A helper takes the second half of the largest
//! range that another connection still has to read, so that all end at about the same time. It asks
//! for the rest of the blob, and closes its connection at the end of its range. What helpers bring
//! is written at its offset, recorded in a journal, and hashed when the first connection reaches
//! it.

use super::blocking::blocking;
use super::error::truncated;
use super::range_plan::{Next, RangePlan};
use super::{
    ByteRange, FailedAttempt, FailureCause, PartOpener, PartialBlob, TransferError, VerifiedWriter,
};
use futures_util::StreamExt;
use landfall_http::{ErrorKind, inherit_upload_mark};
use landfall_model::Limits;
use landfall_model::report::TransferSide;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// How many helpers may fail before no more are sent.
const FAILURES: u32 = 4;

/// Slots for transfers that stand idle near the end of a run.
#[derive(Debug, Clone)]
pub struct IdleSlots {
    free: Arc<Semaphore>,
    all_begun: watch::Receiver<bool>,
    /// Whether a host honours `Range`, as far as it was seen in this run.
    ranges: Arc<Mutex<HashMap<String, bool>>>,
}

impl IdleSlots {
    /// `free` has one permit for each transfer that may be under way; `all_begun` turns true when
    /// each of the run has begun.
    pub fn new(free: Arc<Semaphore>, all_begun: watch::Receiver<bool>) -> IdleSlots {
        IdleSlots {
            free,
            all_begun,
            ranges: Arc::default(),
        }
    }

    /// The next idle slot.
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

/// Writes the rest of a big part to `writer`, with helpers on idle `slots`. Of what lies behind its
/// offset the `ranges` are there.
pub(super) async fn fetch_parallel(
    opener: &Arc<PartOpener>,
    writer: VerifiedWriter,
    ranges: Vec<ByteRange>,
    limits: &Limits,
    slots: &IdleSlots,
) -> Result<(), FailedAttempt> {
    let size = opener.part().descriptor.size;
    let fetch = Arc::new(ParallelFetch {
        opener: opener.clone(),
        step: limits.journal_step,
        partial: writer.partial(),
        plan: Mutex::new(RangePlan::new(
            size,
            writer.offset(),
            ranges,
            limits.parallel_share,
        )),
        moved: Notify::new(),
        news: Notify::new(),
        failures: AtomicU32::new(0),
    });
    // wrong bytes, or no ranges: the next attempt goes in order
    fetch
        .run(writer, slots)
        .await
        .map_err(|failed| match failed.cause {
            FailureCause::Wrong => FailedAttempt {
                cause: FailureCause::WrongOnce,
                ..failed
            },
            _ => failed,
        })
}

/// One blob that several connections fetch.
struct ParallelFetch {
    opener: Arc<PartOpener>,
    /// How much is written between two lines of the journal, in bytes.
    step: u64,
    partial: Arc<dyn PartialBlob>,
    plan: Mutex<RangePlan>,
    /// A helper came to its end.
    moved: Notify,
    /// The first connection has work that can be shared, or it was learned whether ranges are
    /// honoured.
    news: Notify,
    failures: AtomicU32,
}

impl ParallelFetch {
    fn plan(&self) -> MutexGuard<'_, RangePlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a range. If that fails, another run fetches the range again.
    fn record(&self, from: u64, to: u64) {
        let _ = self.partial.record((from, to));
    }

    async fn run(
        self: &Arc<Self>,
        writer: VerifiedWriter,
        slots: &IdleSlots,
    ) -> Result<(), FailedAttempt> {
        let host = self.opener.part().host().to_owned();
        let mut helpers = JoinSet::new();
        let mut first = std::pin::pin!(self.in_order(writer));
        let result = loop {
            let known = slots
                .ranges
                .lock()
                .ok()
                .and_then(|ranges| ranges.get(&host).copied());
            // the first helper finds out whether ranges are honoured
            let useful = known.unwrap_or(helpers.is_empty())
                && self.failures.load(Ordering::Relaxed) < FAILURES;
            let wanted = useful && self.plan().share().is_some();
            tokio::select! {
                result = &mut first => break result,
                slot = slots.next(), if wanted => {
                    let (fetch, ranges, host) = (self.clone(), slots.ranges.clone(), host.clone());
                    helpers.spawn(inherit_upload_mark(async move {
                        let learn = |honoured| {
                            if let Ok(mut ranges) = ranges.lock() {
                                ranges.insert(host.clone(), honoured);
                            }
                            fetch.news.notify_one();
                        };
                        fetch.help(learn).await;
                        drop(slot);
                    }));
                }
                Some(_) = helpers.join_next(), if !helpers.is_empty() => {}
                () = self.news.notified() => {}
            }
        };
        // they hold the file, and so its lock
        helpers.shutdown().await;
        let writer = result?;
        Ok(blocking(move || writer.commit()).await?)
    }

    /// The first connection: everything in order, what helpers brought included.
    async fn in_order(&self, mut writer: VerifiedWriter) -> Result<VerifiedWriter, FailedAttempt> {
        while writer.offset() < self.opener.part().descriptor.size {
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

    async fn pump(&self, writer: &mut VerifiedWriter) -> Result<(), FailedAttempt> {
        let descriptor = &self.opener.part().descriptor;
        let opened = self.opener.open(writer.offset()).await?;
        if opened.start != writer.offset() {
            let message = format!("{}: its host honours no ranges", descriptor.digest);
            return Err(
                TransferError::new(TransferSide::Source, ErrorKind::Invalid, message).into(),
            );
        }
        let mut stream = self.opener.resuming(writer.offset(), opened);
        let mut recorded = writer.offset();
        loop {
            let end = self.plan().first.1;
            if writer.offset() >= end {
                return Ok(());
            }
            let Some(bytes) = stream.next().await else {
                return Err(FailedAttempt::reading(truncated(
                    descriptor,
                    writer.offset(),
                )));
            };
            let bytes = bytes.map_err(|error| self.opener.failed(error))?;
            let end = self.plan().first.1;
            let piece = &bytes[..bytes
                .len()
                .min(usize::try_from(end.saturating_sub(writer.offset())).unwrap_or(usize::MAX))];
            writer.write(piece)?;
            self.opener.count_received(piece.len());
            self.plan().first_at(writer.offset());
            if writer.offset() - recorded >= self.step {
                recorded = writer.offset();
                self.record(0, recorded);
            }
        }
    }

    /// A helper: takes a range, and writes it at its offset.
    async fn help(&self, learn: impl Fn(bool)) {
        let Some((helper, from)) = self.plan().take() else {
            return;
        };
        let brought = self.bring(helper, from, learn).await;
        if brought.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.plan().end(helper);
        self.moved.notify_one();
    }

    async fn bring(
        &self,
        helper: u64,
        from: u64,
        learn: impl Fn(bool),
    ) -> Result<(), FailedAttempt> {
        let opened = self.opener.open(from).await?;
        let is_range = opened.start == from;
        learn(is_range);
        if !is_range {
            return Ok(());
        }
        let mut stream = opened.stream;
        let mut at = from;
        let mut recorded = from;
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(FailedAttempt::reading)?;
            let end = self.plan().helpers.get(&helper).map_or(at, |work| work.end);
            let piece = &bytes[..bytes
                .len()
                .min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX))];
            self.partial.write(piece, at)?;
            self.opener.count_received(piece.len());
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
        Err(FailedAttempt::reading(truncated(
            &self.opener.part().descriptor,
            at,
        )))
    }
}
