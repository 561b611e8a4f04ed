//! Watches the body of an upload: an error of its source, and when it last moved.

use super::body::ByteStream;
use super::error::Error;
use super::ledger::{Entry, Ledger};
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// A watch on the body of an upload.
#[derive(Clone)]
pub(super) struct UploadWatch(Arc<Mutex<State>>);

struct State {
    failure: Option<Error>,
    moved: Instant,
    left: u64,
}

/// The stream as a body, with a watch on it.
pub(super) fn watched(
    stream: ByteStream,
    length: u64,
    ledger: Arc<Ledger>,
    entry: Entry,
) -> (reqwest::Body, UploadWatch) {
    let state = State { failure: None, moved: Instant::now(), left: length };
    let watch = UploadWatch(Arc::new(Mutex::new(state)));
    let seen = watch.clone();
    let stream = stream.map(move |bytes| {
        let mut state = seen.state();
        state.moved = Instant::now();
        match &bytes {
            Ok(bytes) => {
                state.left = state.left.saturating_sub(bytes.len() as u64);
                ledger.bytes(&entry, bytes.len() as u64);
            }
            Err(error) => state.failure = Some(error.clone()),
        }
        drop(state);
        bytes
    });
    (reqwest::Body::wrap_stream(stream), watch)
}

impl UploadWatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The error of the source.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state().failure.clone()
    }

    /// Returns when nothing was taken for `idle`, or no answer came for `answer` after the last byte.
    pub(super) async fn stalled(&self, idle: Duration, answer: Duration) {
        loop {
            let end = {
                let state = self.state();
                state.moved + if state.left == 0 { answer } else { idle }
            };
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
