//! Opens one part of a source for a sink, at any offset and as often as the sink needs it. A stream
//! that breaks off is resumed here, so that the sink does not notice.

use super::error::{shorter, truncated};
use super::retry::PartAttempts;
use super::{
    EntryPart, FailedAttempt, FailureCause, OnCorrupt, OpenedPart, PartSource, verify_stream,
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{Activity, ByteStream, ErrorKind, HttpError, LendableSlot, lend_while_waiting};
use landfall_model::report::Progress;
use landfall_model::{Limits, locked};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tracing::warn;

/// One part of a source while it is transferred to a sink.
pub struct PartOpener {
    source: Arc<dyn PartSource>,
    part: EntryPart,
    /// The slot of the transfer, lent to others while the source sends nothing.
    slot: Arc<dyn LendableSlot>,
    progress: Arc<dyn Progress>,
    activity: Activity,
    state: Mutex<OpenerState>,
}

struct OpenerState {
    attempts: PartAttempts,
    /// The number of received bytes, including repeated ones.
    received: u64,
    /// How many bytes of the part are counted as done in the progress.
    counted: u64,
    /// The failure of the source, for a sink that sees only the error of a stream.
    failure: Option<FailedAttempt>,
    /// Whether the source broke off and was not opened again yet.
    is_broken: bool,
    /// To be called if the bytes of this attempt turn out wrong.
    on_corrupt: Vec<OnCorrupt>,
}

impl PartOpener {
    pub(super) fn new(
        source: Arc<dyn PartSource>,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
        limits: &Limits,
        progress: Arc<dyn Progress>,
        activity: Activity,
    ) -> PartOpener {
        let state = OpenerState {
            attempts: PartAttempts::new(limits),
            received: 0,
            counted: 0,
            failure: None,
            is_broken: false,
            on_corrupt: Vec::new(),
        };
        PartOpener {
            source,
            part: part.clone(),
            slot,
            progress,
            activity,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, OpenerState> {
        locked(&self.state)
    }

    /// Returns the part that is transferred.
    pub fn part(&self) -> &EntryPart {
        &self.part
    }

    /// Returns the counter of the long local work of this transfer.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    pub(super) fn received(&self) -> u64 {
        self.state().received
    }

    /// Counts received bytes. Bytes that are received again are added to the total of progress.
    pub fn count_received(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.state().received += bytes;
        // a part that is read locally sends no requests, whose ends would count
        drop(self.activity.busy());
        let repeated = bytes - self.count(bytes);
        if repeated > 0 {
            self.progress.more(repeated);
        }
        self.progress.bytes(bytes);
    }

    /// Counts `bytes` further bytes of the part as done, up to the size of the part. Returns how
    /// many of them it counted.
    fn count(&self, bytes: u64) -> u64 {
        let mut state = self.state();
        // bytes of a repeated attempt are not progress a second time
        let counted = bytes.min(self.part.descriptor.size - state.counted);
        state.counted += counted;
        counted
    }

    /// Counts the whole part as done, including the bytes that the sink already had.
    pub(super) fn count_complete(&self) {
        self.progress.bytes(self.count(u64::MAX));
    }

    /// Raises the total of progress by the bytes that were counted, because the transfer failed and
    /// the part is not done. The rest is marked as counted too, so that a body that is still being
    /// read cannot count any more.
    pub(super) fn uncount(&self) {
        let rest = self.count(u64::MAX);
        self.progress.more(self.part.descriptor.size - rest);
    }

    pub(super) fn begin_attempt(&self) {
        let mut state = self.state();
        state.failure = None;
        state.is_broken = false;
        state.on_corrupt.clear();
    }

    /// Returns the pause before the next attempt, or `None` after the last one. Notifies the source
    /// if the bytes were wrong.
    pub(super) fn pause_after(&self, failed: &FailedAttempt) -> Option<Duration> {
        let mut state = self.state();
        let mut cause = failed.cause;
        if matches!(cause, FailureCause::Wrong | FailureCause::WrongOnce) {
            // called once: the source then answers differently, so these wrong bytes do not count
            // as the first of two failures
            for act in std::mem::take(&mut state.on_corrupt) {
                act();
                cause = FailureCause::WrongOnce;
            }
        }
        state.attempts.after(cause)
    }

    /// Opens the part at `offset`. The source may start earlier.
    pub(super) async fn open(&self, offset: u64) -> Result<OpenedPart, FailedAttempt> {
        lend_while_waiting(&*self.slot, self.open_with_slot(offset)).await
    }

    async fn open_with_slot(&self, offset: u64) -> Result<OpenedPart, FailedAttempt> {
        let mut opened = self
            .source
            .open(&self.part, offset)
            .await
            .map_err(FailedAttempt::opening)?;
        self.state().on_corrupt.extend(opened.on_corrupt.take());
        Ok(opened)
    }

    /// Opens the part at `offset` for a sink that cannot verify the received bytes. A stream from
    /// byte 0 is verified here and fails before its end if the digest is wrong; a stream from the
    /// middle cannot be verified.
    ///
    /// # Errors
    /// The error of the source; [`PartOpener::failure`] returns the failed attempt.
    pub async fn stream(self: &Arc<Self>, offset: u64) -> Result<ByteStream, HttpError> {
        let opened = match self.open(offset).await {
            Ok(opened) => opened,
            Err(failed) => return Err(self.note(failed)),
        };
        let needs_check = offset == 0 && !opened.is_checked;
        let opener = self.clone();
        let stream = self
            .resuming(offset, opened)
            .inspect_ok(move |bytes| opener.count_received(bytes.len()))
            .boxed();
        if needs_check {
            Ok(self.noting(verify_stream(stream, &self.part.descriptor)))
        } else {
            Ok(stream)
        }
    }

    /// Opens the part at `offset` for a sink that verifies the received bytes and counts them with
    /// [`PartOpener::count_received`]. [`PartOpener::failed`] turns an error of the stream into a
    /// failed attempt.
    ///
    /// # Errors
    /// If the source cannot be opened.
    pub async fn unchecked_stream(
        self: &Arc<Self>,
        offset: u64,
    ) -> Result<ByteStream, FailedAttempt> {
        Ok(self.resuming(offset, self.open(offset).await?))
    }

    /// Returns the bytes from `offset` to the end of the part. If the source breaks off, it is
    /// opened again at that byte, so neither the sink nor its hash has to start over.
    pub(super) fn resuming(self: &Arc<Self>, offset: u64, opened: OpenedPart) -> ByteStream {
        let resuming = ResumingStream {
            opener: self.clone(),
            opened_at: offset,
            at: offset,
            ended_at: None,
            stream: skip(opened.stream, offset - opened.start),
        };
        futures_util::stream::unfold(Some(resuming), async |state: Option<ResumingStream>| {
            let resuming = state?;
            let slot = resuming.opener.slot.clone();
            lend_while_waiting(&*slot, resuming.next()).await
        })
        .boxed()
    }

    /// Opens the part again at `at`, where a stream that was opened at `opened_at` broke off.
    async fn reopen(
        &self,
        broken: HttpError,
        opened_at: u64,
        at: u64,
    ) -> Result<ByteStream, HttpError> {
        let mut pause = None;
        // other errors, such as wrong bytes or a denied request, would repeat at the same offset
        if broken.kind == ErrorKind::Network {
            let mut state = self.state();
            state.is_broken = true;
            // the bytes since the last opening decide: a stream that makes progress may break any
            // number of times
            pause = state.attempts.broke_off(at - opened_at);
        }
        let Some(pause) = pause else {
            return Err(self.note(FailedAttempt::reading(broken)));
        };
        warn!(
            digest = %self.part.descriptor.digest,
            offset = at,
            ?pause,
            error = %broken,
            "the source broke off; resuming at this offset"
        );
        pause_for(pause).await;
        match self.open_with_slot(at).await {
            Ok(opened) => {
                self.state().is_broken = false;
                Ok(skip(opened.stream, at - opened.start))
            }
            Err(failed) => Err(self.note(failed)),
        }
    }

    /// Records the first failure of `stream`, unless a failure was recorded before.
    fn noting(self: &Arc<Self>, stream: ByteStream) -> ByteStream {
        let opener = self.clone();
        stream
            .inspect_err(move |error| {
                if opener.state().failure.is_none() {
                    opener.note(FailedAttempt::reading(error.clone()));
                }
            })
            .boxed()
    }

    fn note(&self, failed: FailedAttempt) -> HttpError {
        let error = (*failed.error.why).clone();
        self.state().failure = Some(failed);
        error
    }

    /// Whether the source has broken off in this attempt and sends no bytes now. If so, the source
    /// caused a failure that the sink reports.
    pub fn is_broken(&self) -> bool {
        let state = self.state();
        state.is_broken || state.failure.is_some()
    }

    /// Removes and returns the failure of the source in this attempt, if there was one.
    pub fn failure(&self) -> Option<FailedAttempt> {
        self.state().failure.take()
    }

    /// Returns the failed attempt for an error of a stream of this opener.
    pub fn failed(&self, error: HttpError) -> FailedAttempt {
        self.failure()
            .unwrap_or_else(|| FailedAttempt::reading(error))
    }
}

/// A stream of a part that is opened again wherever the source breaks off.
struct ResumingStream {
    opener: Arc<PartOpener>,
    /// The offset at which `stream` was opened.
    opened_at: u64,
    /// The offset of the next byte.
    at: u64,
    /// The offset at which an earlier stream ended without an error.
    ended_at: Option<u64>,
    stream: ByteStream,
}

impl ResumingStream {
    /// Returns the next bytes and the stream after them, or an error that ends the stream, or
    /// `None` at the end of the part.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<ResumingStream>)> {
        loop {
            let descriptor = &self.opener.part.descriptor;
            let broken = match self.stream.next().await {
                Some(Ok(bytes)) => {
                    self.at += bytes.len() as u64;
                    return Some((Ok(bytes), Some(self)));
                }
                None if self.at >= descriptor.size => return None,
                // if two responses end at the same byte, they were not cut: the content is shorter
                None if self.ended_at == Some(self.at) => shorter(descriptor, self.at),
                None => {
                    self.ended_at = Some(self.at);
                    truncated(descriptor, self.at)
                }
                Some(Err(error)) => error,
            };
            let ResumingStream {
                opener,
                opened_at,
                at,
                ended_at,
                stream,
            } = self;
            // the broken stream may still hold the slot that the next request waits for
            drop(stream);
            match opener.reopen(broken, opened_at, at).await {
                Ok(stream) => {
                    self = ResumingStream {
                        opener,
                        opened_at: at,
                        at,
                        ended_at,
                        stream,
                    }
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    }
}

/// Sleeps for `pause`. Does not yield to other tasks if the pause is zero.
pub(super) async fn pause_for(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// Drops the first `bytes` of a stream, for a source that can only start at its beginning.
fn skip(stream: ByteStream, mut bytes: u64) -> ByteStream {
    if bytes == 0 {
        return stream;
    }
    let skip_piece = move |next: Result<Bytes, HttpError>| {
        let next = next.map(|mut piece| {
            let skipped = bytes.min(piece.len() as u64);
            bytes -= skipped;
            piece.split_off(skipped as usize)
        });
        let is_empty = next.as_ref().is_ok_and(Bytes::is_empty);
        // an empty piece would look like the end to some receivers
        std::future::ready((!is_empty).then_some(next))
    };
    stream.filter_map(skip_piece).boxed()
}
