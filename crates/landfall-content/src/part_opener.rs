//! One part of a source, for a sink that reads it as often and from wherever its attempts need it.

use super::error::ended;
use super::retry::PartAttempts;
use super::{EntryPart, FailedAttempt, FailureCause, OnCorrupt, PartSource, verify_stream};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ByteStream, ErrorKind, HttpError, LendableSlot, lend_while_waiting};
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One part of a source, while it is brought to a sink.
pub struct PartOpener {
    source: Arc<dyn PartSource>,
    part: EntryPart,
    /// The slot of its transfer, lent while the source gives nothing.
    slot: Arc<dyn LendableSlot>,
    progress: Arc<dyn Progress>,
    state: Mutex<State>,
}

struct State {
    attempts: PartAttempts,
    received: u64,
    /// What of the part's size progress knows to be done.
    counted: u64,
    /// What failed at the source, for a sink that sees no more than an error of a stream.
    failure: Option<FailedAttempt>,
    /// The source broke off, and was not opened again yet.
    is_broken: bool,
    /// What the source does if the bytes that it gave in this attempt turn out wrong.
    on_wrong: Vec<OnCorrupt>,
}

impl PartOpener {
    pub(super) fn new(
        source: Arc<dyn PartSource>,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
        limits: &Limits,
        progress: Arc<dyn Progress>,
    ) -> PartOpener {
        let state = State {
            attempts: PartAttempts::new(limits),
            received: 0,
            counted: 0,
            failure: None,
            is_broken: false,
            on_wrong: Vec::new(),
        };
        PartOpener {
            source,
            part: part.clone(),
            slot,
            progress,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that it opens.
    pub fn part(&self) -> &EntryPart {
        &self.part
    }

    pub(super) fn received(&self) -> u64 {
        self.state().received
    }

    /// So many bytes came. What comes again is more to do than was said.
    pub fn came(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.state().received += bytes;
        let again = bytes - self.count(bytes);
        if again > 0 {
            self.progress.more(again);
        }
        self.progress.bytes(bytes);
    }

    /// How many of so many bytes are not counted yet: no part counts more than its size.
    fn count(&self, bytes: u64) -> u64 {
        let mut state = self.state();
        let counted = bytes.min(self.part.descriptor.size - state.counted);
        state.counted += counted;
        counted
    }

    /// The part stands at the sink: what of it was there before is done too.
    pub(super) fn settled(&self) {
        self.progress.bytes(self.count(u64::MAX));
    }

    /// The part is given up: what came of it is still to do. A body that is under way may yet be
    /// read.
    pub(super) fn given_up(&self) {
        let rest = self.count(u64::MAX);
        self.progress.more(self.part.descriptor.size - rest);
    }

    /// An attempt begins.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        (state.failure, state.is_broken, state.on_wrong) = (None, false, Vec::new());
    }

    /// The pause before the next attempt; `None` where there is none.
    pub(super) fn after(&self, failed: &FailedAttempt) -> Option<Duration> {
        let mut state = self.state();
        let mut cause = failed.cause;
        if matches!(cause, FailureCause::Wrong | FailureCause::WrongOnce) {
            for act in std::mem::take(&mut state.on_wrong) {
                act();
                cause = FailureCause::WrongOnce;
            }
        }
        state.attempts.after(cause)
    }

    /// Opens the part at `offset`. Returns where the stream really starts, and whether it was
    /// checked.
    pub(super) async fn open(&self, offset: u64) -> Result<(u64, ByteStream, bool), FailedAttempt> {
        lend_while_waiting(&*self.slot, self.open_now(offset)).await
    }

    async fn open_now(&self, offset: u64) -> Result<(u64, ByteStream, bool), FailedAttempt> {
        let opened = self
            .source
            .open(&self.part, offset)
            .await
            .map_err(FailedAttempt::opening)?;
        self.state().on_wrong.extend(opened.on_wrong);
        Ok((opened.start, opened.stream, opened.is_checked))
    }

    /// The part from `offset` on, for a sink that does not check what it takes. From its beginning
    /// the content is checked, so that wrong bytes do not come to their end; from the middle only
    /// the sink can check it.
    ///
    /// # Errors
    /// When the source cannot be opened, in its own words; [`PartOpener::failure`] tells the sink.
    pub async fn stream(self: &Arc<Self>, offset: u64) -> Result<ByteStream, HttpError> {
        let opened = self
            .open(offset)
            .await
            .map_err(|failed| self.note(failed))?;
        let is_checked = opened.2;
        let opener = self.clone();
        let stream = self
            .resuming(offset, opened)
            .inspect_ok(move |bytes| opener.came(bytes.len()))
            .boxed();
        match offset {
            0 if !is_checked => Ok(self.noting(verify_stream(stream, &self.part.descriptor))),
            _ => Ok(stream),
        }
    }

    /// The part from `offset` on, for a sink that checks what it takes, and says by
    /// [`PartOpener::came`] what that was. What fails is told by [`PartOpener::failed`].
    ///
    /// # Errors
    /// When the source cannot be opened.
    pub async fn unchecked_stream(
        self: &Arc<Self>,
        offset: u64,
    ) -> Result<ByteStream, FailedAttempt> {
        Ok(self.resuming(offset, self.open(offset).await?))
    }

    /// What was opened for `offset`, to the end of the part: where the source breaks off, it is
    /// opened again at that byte, so that neither the sink nor its hash begins anew. What failed
    /// for good is noted.
    pub(super) fn resuming(
        self: &Arc<Self>,
        offset: u64,
        opened: (u64, ByteStream, bool),
    ) -> ByteStream {
        let (start, stream, _) = opened;
        let stream = skip(stream, offset - start);
        let resuming = Resuming {
            opener: self.clone(),
            from: offset,
            at: offset,
            stream,
        };
        futures_util::stream::unfold(Some(resuming), async |state: Option<Resuming>| {
            let resuming = state?;
            let slot = resuming.opener.slot.clone();
            lend_while_waiting(&*slot, resuming.next()).await
        })
        .boxed()
    }

    /// The stream again, which was opened at `from` and broke off at `at`.
    async fn reopen(&self, broken: HttpError, from: u64, at: u64) -> Result<ByteStream, HttpError> {
        let pause = match broken.kind {
            ErrorKind::Network => {
                let mut state = self.state();
                state.is_broken = true;
                state.attempts.broke_off(at - from)
            }
            _ => None,
        };
        let Some(pause) = pause else {
            return Err(self.note(FailedAttempt::reading(broken)));
        };
        pause_for(pause).await;
        let (start, stream, _) = self
            .open_now(at)
            .await
            .map_err(|failed| self.note(failed))?;
        self.state().is_broken = false;
        Ok(skip(stream, at - start))
    }

    /// The stream, with its failures noted.
    fn noting(self: &Arc<Self>, stream: ByteStream) -> ByteStream {
        let opener = self.clone();
        let noted = stream.map(move |next| {
            next.inspect_err(|error| {
                if opener.state().failure.is_none() {
                    opener.note(FailedAttempt::reading(error.clone()));
                }
            })
        });
        noted.boxed()
    }

    fn note(&self, failed: FailedAttempt) -> HttpError {
        let error = (*failed.error.why).clone();
        self.state().failure = Some(failed);
        error
    }

    /// Whether the source broke off in this attempt and gives no bytes now: the failure that the
    /// sink sees is not its own.
    pub fn is_broken(&self) -> bool {
        let state = self.state();
        state.is_broken || state.failure.is_some()
    }

    /// What failed at the source in this attempt.
    pub fn failure(&self) -> Option<FailedAttempt> {
        self.state().failure.take()
    }

    /// What failed, by an error of [`PartOpener::resuming`].
    pub fn failed(&self, error: HttpError) -> FailedAttempt {
        self.failure()
            .unwrap_or_else(|| FailedAttempt::reading(error))
    }
}

/// A part that is being read, and resumed where its source breaks off.
struct Resuming {
    opener: Arc<PartOpener>,
    /// Where `stream` began.
    from: u64,
    /// How far it came.
    at: u64,
    stream: ByteStream,
}

impl Resuming {
    /// The next bytes and what follows them, an error that nothing follows, or `None` at the end of
    /// the part.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<Resuming>)> {
        loop {
            let size = self.opener.part.descriptor.size;
            let broken = match self.stream.next().await {
                Some(Ok(bytes)) => {
                    self.at += bytes.len() as u64;
                    return Some((Ok(bytes), Some(self)));
                }
                None if self.at >= size => return None,
                None => ended(&self.opener.part.descriptor, self.at),
                Some(Err(error)) => error,
            };
            let Resuming {
                opener,
                from,
                at,
                stream,
            } = self;
            // it may hold a slot that the next request waits for
            drop(stream);
            match opener.reopen(broken, from, at).await {
                Ok(stream) => {
                    self = Resuming {
                        opener,
                        from: at,
                        at,
                        stream,
                    }
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    }
}

/// Waits so long; not at all where that is nothing.
pub(super) async fn pause_for(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// The stream without its first bytes: a source that cannot start elsewhere starts at its
/// beginning.
fn skip(stream: ByteStream, mut bytes: u64) -> ByteStream {
    if bytes == 0 {
        return stream;
    }
    let rest = move |next: Result<Bytes, HttpError>| {
        let next = next.map(|mut piece| {
            let passed = bytes.min(piece.len() as u64);
            bytes -= passed;
            piece.split_off(passed as usize)
        });
        std::future::ready(
            Some(next).filter(|next| next.as_ref().map_or(true, |piece| !piece.is_empty())),
        )
    };
    stream.filter_map(rest).boxed()
}
