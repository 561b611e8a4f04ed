//! Fetches a big blob over several connections, when slots are idle near the end of a run.
//!
//! The first connection reads in order and hashes. A helper gets a range that no connection has, or
//! the second half of a range that another connection still has to read, so that all connections
//! end at about the same time. The helper requests the rest of the blob and closes its connection
//! at the end of its range, which may become shorter meanwhile. The bytes that it receives are
//! written at their offset, recorded in a journal, and hashed when the first connection reaches
//! them.

use crate::error::truncated;
use crate::range_plan::{FirstConnectionStep, RangePlan};
use crate::verified_writer::blocking;
use crate::{
    ByteRange, FailedAttempt, FailureCause, PartOpener, PartialBlob, TransferError, TransferSlots,
    VerifiedWriter,
};
use futures_util::StreamExt;
use landfall_http::{ErrorKind, inherit_upload_mark};
use landfall_model::report::TransferSide;
use landfall_model::{Limits, locked};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// After this number of failed helpers, no more are started.
const MAX_FAILURES: u32 = 4;

/// Slots for helpers, and what the run knows about the hosts that helpers read from.
#[derive(Clone)]
pub struct IdleSlots {
    slots: TransferSlots,
    /// Whether each host supports `Range`, as far as it is known in this run.
    ranges: Arc<Mutex<HashMap<String, bool>>>,
}

impl IdleSlots {
    /// Returns the slots that nothing else of the run needs.
    pub fn new(slots: TransferSlots) -> IdleSlots {
        IdleSlots {
            slots,
            ranges: Arc::default(),
        }
    }
}

/// Writes the rest of a big part to `writer`, with helpers on idle `slots`. The `ranges` after the
/// offset of `writer` are written already.
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
        journal_step: limits.journal_step,
        partial: writer.partial(),
        plan: Mutex::new(RangePlan::new(
            size,
            writer.offset(),
            ranges,
            limits.parallel_share,
        )),
        helper_ended: Notify::new(),
        may_need_helper: Notify::new(),
        failures: AtomicU32::new(0),
    });
    let mut result = fetch.run(writer, slots).await;
    // ranges may have caused the wrong bytes, and the next attempt uses none, so this failure is
    // not counted
    if let Err(failed) = &mut result
        && failed.cause == FailureCause::Wrong
    {
        failed.cause = FailureCause::WrongOnce;
    }
    result
}

/// The fetch of one blob over several connections.
struct ParallelFetch {
    opener: Arc<PartOpener>,
    /// How many bytes are written between two lines of the journal.
    journal_step: u64,
    partial: Arc<dyn PartialBlob>,
    plan: Mutex<RangePlan>,
    /// Notified when a helper has ended.
    helper_ended: Notify,
    /// Notified when the first connection has work to share, or when it becomes known whether the
    /// host supports ranges.
    may_need_helper: Notify,
    failures: AtomicU32,
}

impl ParallelFetch {
    fn plan(&self) -> MutexGuard<'_, RangePlan> {
        locked(&self.plan)
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
        let mut first = std::pin::pin!(self.write_in_order(writer));
        let result = loop {
            let known = locked(&slots.ranges).get(&host).copied();
            // until range support is known, a single helper runs and finds out
            let is_useful = known.unwrap_or(helpers.is_empty())
                && self.failures.load(Ordering::Relaxed) < MAX_FAILURES;
            let wanted = is_useful && self.plan().largest_share().is_some();
            tokio::select! {
                result = &mut first => break result,
                // `wanted` is computed again after each event, because the largest share becomes
                // smaller with every byte
                slot = slots.slots.acquire_idle(), if wanted => {
                    let fetch = self.clone();
                    let slots = slots.clone();
                    helpers.spawn(inherit_upload_mark(async move {
                        fetch.run_helper(&slots).await;
                        drop(slot);
                    }));
                }
                Some(_) = helpers.join_next(), if !helpers.is_empty() => {}
                () = self.may_need_helper.notified() => {}
            }
        };
        // helpers hold the file and thereby its lock, which the next attempt needs
        helpers.shutdown().await;
        let writer = result?;
        // a slow disk may take long to sync a big blob
        let _busy = self.opener.activity().busy();
        Ok(blocking(move || writer.commit()).await?)
    }

    /// Runs the first connection, which also hashes what helpers have written.
    async fn write_in_order(
        &self,
        mut writer: VerifiedWriter,
    ) -> Result<VerifiedWriter, FailedAttempt> {
        while writer.offset() < self.opener.part().descriptor.size {
            let next = self.plan().next_step(writer.offset());
            match next {
                FirstConnectionStep::Wait => self.helper_ended.notified().await,
                FirstConnectionStep::Absorb(end) => {
                    writer = blocking(move || writer.absorb(end).map(|()| writer)).await?;
                    self.record(0, writer.offset());
                }
                FirstConnectionStep::Fetch => {
                    self.may_need_helper.notify_one();
                    self.pump(&mut writer).await?;
                }
            }
        }
        Ok(writer)
    }

    async fn pump(&self, writer: &mut VerifiedWriter) -> Result<(), FailedAttempt> {
        let descriptor = &self.opener.part().descriptor;
        let opened = self.opener.open(writer.offset()).await?;
        // helpers need ranges as well, so the next attempt fetches the blob over one connection
        if opened.start != writer.offset() {
            let message = format!("{}: its host does not support ranges", descriptor.digest);
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
            // read again after the wait, because a helper may have taken the second half meanwhile
            let end = self.plan().first.1;
            let piece = &bytes[..bytes
                .len()
                .min(usize::try_from(end.saturating_sub(writer.offset())).unwrap_or(usize::MAX))];
            writer.write(piece)?;
            self.opener.count_received(piece.len());
            self.plan().advance_first(writer.offset());
            if writer.offset() - recorded >= self.journal_step {
                recorded = writer.offset();
                self.record(0, recorded);
            }
        }
    }

    /// Records whether the host supports ranges, for all big blobs of the run.
    fn record_range_support(&self, slots: &IdleSlots, is_supported: bool) {
        let host = self.opener.part().host().to_owned();
        locked(&slots.ranges).insert(host, is_supported);
        self.may_need_helper.notify_one();
    }

    /// Runs a helper, which fetches a range and writes it.
    async fn run_helper(&self, slots: &IdleSlots) {
        let Some((helper, from)) = self.plan().add_helper() else {
            return;
        };
        if self.write_range(helper, from, slots).await.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        // after a failure too, so that the rest of its range does not stay reserved
        self.plan().end_helper(helper);
        self.helper_ended.notify_one();
    }

    async fn write_range(
        &self,
        helper: u64,
        from: u64,
        slots: &IdleSlots,
    ) -> Result<(), FailedAttempt> {
        let opened = self.opener.open(from).await?;
        let is_range = opened.start == from;
        self.record_range_support(slots, is_range);
        if !is_range {
            return Ok(());
        }
        // not resumed here: the range of a failed helper is free for any other connection
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
            // each record costs a write, so a record covers many bytes; bytes without a record are
            // fetched again
            if at - recorded >= self.journal_step || at >= end {
                self.record(recorded, at);
                recorded = at;
            }
            self.plan().advance_helper(helper, at);
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
