//! Coalesced refreshes: callers that wait for the newest value at the same time share one refresh,
//! which begins after the last of their calls.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// The newest value, or why it is unknown.
pub(crate) type RefreshResult<T> = Result<T, String>;

/// The error of a request that gets no answer because the other end was dropped.
const STOPPING: &str = "the server is about to stop";

/// Requests the newest value of a shared state.
pub(crate) struct RefreshHandle<T> {
    requests: mpsc::UnboundedSender<oneshot::Sender<RefreshResult<T>>>,
    /// The number of refreshes so far, for the metrics.
    pub(crate) refreshes: AtomicU64,
    /// The number of calls of [`RefreshHandle::newest`] that were answered with an error.
    pub(crate) failures: AtomicU64,
}

/// The requests to answer, at the other end of a [`RefreshHandle`].
pub(crate) struct RefreshRequests<T>(mpsc::UnboundedReceiver<oneshot::Sender<RefreshResult<T>>>);

impl<T: Clone> RefreshHandle<T> {
    /// A handle and the requests that it makes.
    pub(crate) fn new() -> (RefreshHandle<T>, RefreshRequests<T>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let handle = RefreshHandle {
            requests: sender,
            refreshes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        };
        (handle, RefreshRequests(receiver))
    }

    /// The newest value as of this call.
    pub(crate) async fn newest(&self) -> RefreshResult<T> {
        let (sender, receiver) = oneshot::channel();
        self.requests.send(sender).map_err(|_| STOPPING)?;
        let newest = receiver.await.map_err(|_| STOPPING)?;
        if newest.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        newest
    }
}

impl<T: Clone> RefreshRequests<T> {
    /// Answers requests with the result of `refresh` until the handle is dropped.
    pub(crate) async fn answer(mut self, mut refresh: impl AsyncFnMut() -> RefreshResult<T>) {
        while let Some(first) = self.0.recv().await {
            let mut waiting = vec![first];
            // requests that arrive during the refresh are not included: they need a value from
            // after their call
            while let Ok(other) = self.0.try_recv() {
                waiting.push(other);
            }
            let newest = refresh().await;
            for sender in waiting {
                // the client may have disconnected meanwhile
                let _ = sender.send(newest.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::time::Duration;

    #[tokio::test]
    async fn concurrent_calls_share_one_refresh_that_begins_after_them() {
        let (handle, requests) = RefreshHandle::new();
        let refreshes = AtomicU64::new(0);
        let answering = requests.answer(async || {
            let number = refreshes.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            if number < 2 {
                Ok(number)
            } else {
                Err("gone".to_owned())
            }
        });
        let calls = async {
            assert!(
                join_all((0..50).map(|_| handle.newest()))
                    .await
                    .iter()
                    .all(|one| *one == Ok(0))
            );
            assert_eq!(handle.newest().await, Ok(1));
            assert_eq!(handle.newest().await, Err("gone".to_owned()));
        };
        tokio::select! {
            () = answering => unreachable!("a handle still exists"),
            () = calls => {}
        }
        assert_eq!(
            (
                refreshes.load(Ordering::SeqCst),
                handle.failures.load(Ordering::SeqCst)
            ),
            (3, 1)
        );
    }
}
