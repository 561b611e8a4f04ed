//! Watches the body of an upload: an error of its source, and when it last moved.

use super::body::ByteStream;
use super::error::HttpError;
use super::host_limiter::Slot;
use super::ledger::{Entry, Ledger};
use super::lendable_slot::lend_while_waiting;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// A watch on the body of an upload.
#[derive(Clone)]
pub(super) struct UploadWatch(Arc<Mutex<State>>);

struct State {
    failure: Option<HttpError>,
    moved: Instant,
    /// The connection wants bytes, and the source has none yet. It has a patience of its own.
    waits_for_source: bool,
    left: u64,
}

/// The stream, for the body of an upload that lends its slot while the source has nothing.
pub(super) fn lent_while_waiting(stream: ByteStream, slot: Weak<Slot>) -> ByteStream {
    futures_util::stream::unfold((stream, slot), async |(mut stream, slot)| {
        let next = match slot.upgrade() {
            Some(slot) => lend_while_waiting(&*slot, stream.next()).await,
            None => stream.next().await,
        };
        next.map(|next| (next, (stream, slot)))
    })
    .boxed()
}

/// The stream as a body, with a watch on it.
pub(super) fn watched(
    mut stream: ByteStream,
    length: u64,
    ledger: Arc<Ledger>,
    entry: Entry,
) -> (reqwest::Body, UploadWatch) {
    let state = State {
        failure: None,
        moved: Instant::now(),
        waits_for_source: false,
        left: length,
    };
    let watch = UploadWatch(Arc::new(Mutex::new(state)));
    let seen = watch.clone();
    let stream = futures_util::stream::poll_fn(move |context| {
        let next = stream.poll_next_unpin(context);
        let mut state = seen.state();
        state.waits_for_source = next.is_pending();
        state.moved = Instant::now();
        match &next {
            Poll::Ready(Some(Ok(bytes))) => {
                state.left = state.left.saturating_sub(bytes.len() as u64);
                ledger.bytes(&entry, bytes.len() as u64);
            }
            Poll::Ready(Some(Err(error))) => state.failure = Some(error.clone()),
            Poll::Ready(None) | Poll::Pending => {}
        }
        drop(state);
        next
    });
    (reqwest::Body::wrap_stream(stream), watch)
}

impl UploadWatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The error of the source.
    pub(super) fn failure(&self) -> Option<HttpError> {
        self.state().failure.clone()
    }

    /// Returns when the connection took nothing for `idle`, or no answer came for `answer` after
    /// the last byte. Time in which the source has nothing does not count.
    pub(super) async fn stalled(&self, idle: Duration, answer: Duration) {
        loop {
            let end = {
                let state = self.state();
                let moved = if state.waits_for_source && state.left > 0 {
                    Instant::now()
                } else {
                    state.moved
                };
                moved + if state.left == 0 { answer } else { idle }
            };
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
