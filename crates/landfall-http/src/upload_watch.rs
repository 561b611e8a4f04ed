//! Watches the body of an upload for an error of its source and for a stall.

use super::body::ByteStream;
use super::error::HttpError;
use super::host_limiter::HostSlot;
use super::ledger::{Ledger, LedgerEntry};
use super::lendable_slot::lend_while_waiting;
use futures_util::StreamExt;
use landfall_model::locked;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Watches the body of one upload.
#[derive(Clone)]
pub(super) struct UploadWatch(Arc<Mutex<UploadState>>);

struct UploadState {
    /// The error that the source ended with.
    failure: Option<HttpError>,
    /// The time at which the connection last requested bytes.
    moved: Instant,
    /// Whether the connection waits for bytes of the source, which has a timeout of its own.
    waits_for_source: bool,
    /// The number of bytes that the source has not returned yet.
    left: u64,
}

/// Lends the slot of an upload while the source of its body, `stream`, returns no bytes.
///
/// The client may keep the body after its response has ended, so the body holds only a weak
/// reference to the slot.
pub(super) fn lend_while_source_waits(stream: ByteStream, slot: Weak<HostSlot>) -> ByteStream {
    futures_util::stream::unfold((stream, slot), async |(mut stream, slot)| {
        let next = match slot.upgrade() {
            Some(slot) => lend_while_waiting(&*slot, stream.next()).await,
            None => stream.next().await,
        };
        next.map(|next| (next, (stream, slot)))
    })
    .boxed()
}

/// Returns a request body that reads `stream`, and a watch on the body. The bytes of `stream` are
/// added to the ledger.
pub(super) fn watch_upload(
    mut stream: ByteStream,
    length: u64,
    ledger: Arc<Ledger>,
    entry: LedgerEntry,
) -> (reqwest::Body, UploadWatch) {
    let state = UploadState {
        failure: None,
        moved: Instant::now(),
        waits_for_source: false,
        left: length,
    };
    let watch = UploadWatch(Arc::new(Mutex::new(state)));
    let seen = watch.clone();
    // the connection polls the body whenever it can send more: the time of the last poll shows
    // whether the upload makes progress
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
    fn state(&self) -> MutexGuard<'_, UploadState> {
        locked(&self.0)
    }

    /// Returns the error of the source, if it failed.
    pub(super) fn failure(&self) -> Option<HttpError> {
        self.state().failure.clone()
    }

    /// Returns once the connection has accepted no bytes for `idle`, or no response has arrived for
    /// `answer` after the last byte. Time in which the source has no bytes does not count.
    pub(super) async fn stalled(&self, idle: Duration, answer: Duration) {
        loop {
            let end = {
                let state = self.state();
                let moved = if state.waits_for_source && state.left > 0 {
                    Instant::now()
                } else {
                    state.moved
                };
                // after the last byte, a registry may hash or move a large blob before it answers
                moved + if state.left == 0 { answer } else { idle }
            };
            if end <= Instant::now() {
                return;
            }
            // the end moves with each byte, so it is computed again after the wait
            tokio::time::sleep_until(end).await;
        }
    }
}
