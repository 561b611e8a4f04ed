//! Fetches a big blob over several connections, when slots are idle near the end of a run.
//!
//! The first connection reads in order and hashes. A helper gets a range that no connection has, or
//! the second half of a range that another connection still has to read, so that all connections
//! end at about the same time. The helper requests the rest of the blob and closes its connection
//! at the end of its range, which may become shorter meanwhile. The bytes that it receives are
//! written at their offset, recorded in a journal, and hashed when the first connection reaches
//! them.

use crate::error::truncated;
use crate::verified_writer::blocking;
use crate::{
    ByteRange, FailedAttempt, FailureCause, PartOpener, PartialBlob, TransferError, TransferSlots,
    VerifiedWriter, merge_ranges,
};
use futures_util::StreamExt;
use landfall_http::{ErrorKind, inherit_upload_mark};
use landfall_model::report::TransferSide;
use landfall_model::{Limits, locked};
use std::collections::{BTreeMap, HashMap};
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
        let _busy = self.opener.activity.busy();
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
            let piece = up_to(end, writer.offset(), &bytes);
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
            let piece = up_to(end, at, &bytes);
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

/// Returns those of the bytes at the offset `at` that are before `end`.
fn up_to(end: u64, at: u64, bytes: &[u8]) -> &[u8] {
    let length = end.saturating_sub(at).min(bytes.len() as u64);
    &bytes[..length as usize]
}

// Which connection fetches which range.

/// The ranges of a blob that each connection fetches.
#[derive(Debug)]
struct RangePlan {
    size: u64,
    /// The smallest range for a helper, in bytes.
    min_share: u64,
    /// The range that the first connection still has to fetch. Everything before it is hashed.
    first: ByteRange,
    /// The range of each helper, by its number.
    helpers: BTreeMap<u64, HelperRange>,
    /// The written ranges after the offset of the first connection.
    written: Vec<ByteRange>,
    /// The number of helpers so far.
    helper_count: u64,
}

/// The range of a helper. Its end becomes smaller when another helper takes the second half.
#[derive(Debug, Clone, Copy)]
struct HelperRange {
    from: u64,
    at: u64,
    end: u64,
}

/// The next step of the first connection.
#[derive(Debug, PartialEq, Eq)]
enum FirstConnectionStep {
    /// Read and hash the bytes that helpers wrote, up to this offset.
    Absorb(u64),
    /// Wait for the helper that is at the offset.
    Wait,
    /// Fetch the range in [`RangePlan::first`].
    Fetch,
}

impl RangePlan {
    fn new(size: u64, at: u64, written: Vec<ByteRange>, min_share: u64) -> RangePlan {
        RangePlan {
            size,
            min_share,
            first: (at, at),
            helpers: BTreeMap::new(),
            written,
            helper_count: 0,
        }
    }

    /// Returns the next step of the first connection at offset `at`. Sets `first` to the range to
    /// fetch, which is empty for the other steps.
    fn next_step(&mut self, at: u64) -> FirstConnectionStep {
        self.first = (at, at);
        if let Some((_, to)) = self
            .written
            .iter()
            .find(|(from, to)| *from <= at && at < *to)
        {
            return FirstConnectionStep::Absorb(*to);
        }
        match self
            .helpers
            .values()
            .find(|work| work.from <= at && at < work.end)
        {
            // bytes are hashed while the helper still works, so that little is left to hash at the
            // end
            Some(work) if work.at > at => FirstConnectionStep::Absorb(work.at),
            Some(_) => FirstConnectionStep::Wait,
            None => {
                let assigned = self.assigned().into_iter().map(|(from, _)| from);
                self.first.1 = assigned
                    .filter(|from| *from > at)
                    .min()
                    .unwrap_or(self.size);
                FirstConnectionStep::Fetch
            }
        }
    }

    /// Returns the ranges that are written or belong to helpers.
    fn assigned(&self) -> Vec<ByteRange> {
        let helpers = self.helpers.values().map(|work| (work.from, work.end));
        self.written.iter().copied().chain(helpers).collect()
    }

    /// Returns the largest range for a new helper: a range that is not written and belongs to no
    /// connection, or the second half of what a connection still has to read. Returns `None` if
    /// that range is shorter than `min_share`.
    fn largest_share(&self) -> Option<ByteRange> {
        let halves = self
            .helpers
            .values()
            .map(|work| (work.at, work.end))
            .chain([self.first])
            .map(|(at, end)| (at + (end - at).div_ceil(2), end));
        let mut assigned = self.assigned();
        // everything before the end of `first` is hashed or assigned to the first connection
        assigned.push((0, self.first.1));
        let assigned = merge_ranges(assigned);
        let ends = assigned
            .iter()
            .skip(1)
            .map(|(from, _)| *from)
            .chain([self.size]);
        let gaps = assigned.iter().map(|(_, to)| *to).zip(ends);
        halves
            .chain(gaps)
            .max_by_key(|(from, end)| end - from)
            .filter(|(from, end)| end - from >= self.min_share)
    }

    /// Adds a helper for the largest share. Returns its number and the offset where it begins.
    fn add_helper(&mut self) -> Option<(u64, u64)> {
        let (from, end) = self.largest_share()?;
        // the share is the second half of the first connection's range, which now ends at `from`
        if self.first.0 < from && self.first.1 == end {
            self.first.1 = from;
        }
        if let Some(work) = self
            .helpers
            .values_mut()
            .find(|work| work.at < from && work.end == end)
        {
            work.end = from;
        }
        self.helper_count += 1;
        self.helpers.insert(
            self.helper_count,
            HelperRange {
                from,
                at: from,
                end,
            },
        );
        Some((self.helper_count, from))
    }

    /// Moves the first connection to `at`, but not past the end of its range. `at` is past that end
    /// if a helper has just taken the second half.
    fn advance_first(&mut self, at: u64) {
        self.first.0 = at.min(self.first.1);
    }

    /// Moves a helper to `at`, but not past the end of its range.
    fn advance_helper(&mut self, helper: u64, at: u64) {
        if let Some(work) = self.helpers.get_mut(&helper) {
            work.at = at.min(work.end);
        }
    }

    /// Removes a helper that has ended or failed. The bytes that it wrote count as written, and the
    /// rest of its range is free.
    fn end_helper(&mut self, helper: u64) {
        if let Some(work) = self.helpers.remove(&helper) {
            self.written.push((work.from, work.at));
            self.written = merge_ranges(std::mem::take(&mut self.written));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    #[test]
    fn helpers_get_second_halves_and_unassigned_ranges() {
        let mut plan = RangePlan::new(128 * M, 0, vec![(96 * M, 112 * M)], 8 * M);
        assert_eq!(plan.next_step(0), FirstConnectionStep::Fetch);
        assert_eq!(plan.first, (0, 96 * M));
        assert_eq!(plan.add_helper(), Some((1, 48 * M)));
        assert_eq!(plan.first, (0, 48 * M));
        // half of 48 MiB twice, and 16 MiB at the end
        assert_eq!(
            plan.largest_share().map(|(from, end)| end - from),
            Some(24 * M)
        );
        let shares: Vec<u64> = std::iter::from_fn(|| plan.add_helper())
            .map(|(_, from)| from / M)
            .collect();
        assert!(shares.contains(&112), "{shares:?}");
        assert!(
            plan.largest_share()
                .is_none_or(|(from, end)| end - from >= 8 * M)
        );
        let mut all: Vec<ByteRange> = plan.assigned();
        all.push(plan.first);
        assert_eq!(merge_ranges(all), [(0, 128 * M)]);
    }

    #[test]
    fn the_first_connection_absorbs_ranges_written_by_helpers() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 8 * M);
        plan.next_step(0);
        let (helper, from) = plan.add_helper().unwrap();
        assert_eq!((from, plan.first.1), (32 * M, 32 * M));
        assert_eq!(plan.next_step(from), FirstConnectionStep::Wait);
        plan.advance_helper(helper, 40 * M);
        assert_eq!(plan.next_step(from), FirstConnectionStep::Absorb(40 * M));
        // the helper fails: its written bytes are kept, and the remaining ones are fetched
        plan.end_helper(helper);
        assert_eq!(plan.next_step(from), FirstConnectionStep::Absorb(40 * M));
        assert_eq!(
            (plan.next_step(40 * M), plan.first),
            (FirstConnectionStep::Fetch, (40 * M, 64 * M))
        );
    }

    /// If another helper takes the second half of a range while a piece is being received, the
    /// piece may end after the new end of the range.
    #[test]
    fn bytes_after_a_moved_end_are_not_counted() {
        let mut plan = RangePlan::new(64 * M, 0, vec![], 4 * M);
        plan.next_step(0);
        let (helper, from) = plan.add_helper().unwrap();
        let shares = [
            from,
            plan.add_helper().unwrap().1,
            plan.add_helper().unwrap().1,
        ];
        assert_eq!(shares, [32 * M, 16 * M, 48 * M]);
        plan.advance_first(17 * M);
        plan.advance_helper(helper, 50 * M);
        assert_eq!(plan.first, (16 * M, 16 * M));
        assert_eq!(plan.largest_share(), Some((56 * M, 64 * M)));
        plan.end_helper(helper);
        assert_eq!(plan.next_step(32 * M), FirstConnectionStep::Absorb(48 * M));
    }
}
