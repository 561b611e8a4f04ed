//! Many who ask for the newest of something wait for one answer, which was asked for after the last
//! of them came.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// The newest; or why nobody knows it.
pub(super) type Fresh<T> = Result<T, String>;

/// Where the newest is asked for.
pub(super) struct Freshness<T> {
    ask: mpsc::UnboundedSender<oneshot::Sender<Fresh<T>>>,
    /// How often it was looked for.
    pub(super) asked: AtomicU64,
    /// How many were told that nobody knows.
    pub(super) failed: AtomicU64,
}

/// Those who wait.
pub(super) struct Asking<T>(mpsc::UnboundedReceiver<oneshot::Sender<Fresh<T>>>);

impl<T: Clone> Freshness<T> {
    /// With its other end.
    pub(super) fn new() -> (Freshness<T>, Asking<T>) {
        let (ask, asking) = mpsc::unbounded_channel();
        (
            Freshness {
                ask,
                asked: AtomicU64::new(0),
                failed: AtomicU64::new(0),
            },
            Asking(asking),
        )
    }

    /// The newest by now.
    ///
    /// # Errors
    /// When nobody knows it.
    pub(super) async fn newest(&self) -> Fresh<T> {
        let (tell, told) = oneshot::channel();
        let stopped = || "the server is about to stop".to_owned();
        self.ask.send(tell).map_err(|_| stopped())?;
        let newest = told.await.map_err(|_| stopped())?;
        self.failed
            .fetch_add(u64::from(newest.is_err()), Ordering::Relaxed);
        newest
    }
}

impl<T: Clone> Asking<T> {
    /// Answers for as long as anybody can ask, with what `find` finds.
    pub(super) async fn answer(mut self, mut find: impl AsyncFnMut() -> Fresh<T>) {
        while let Some(first) = self.0.recv().await {
            let mut waiting = vec![first];
            while let Ok(other) = self.0.try_recv() {
                waiting.push(other);
            }
            let newest = find().await;
            for one in waiting {
                // whoever asked may have gone
                let _ = one.send(newest.clone());
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
    async fn many_share_one_answer_that_was_looked_for_after_they_came() {
        let (freshness, asking) = Freshness::new();
        let looked = AtomicU64::new(0);
        let answering = asking.answer(async || {
            let number = looked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
            if number < 2 {
                Ok(number)
            } else {
                Err("gone".to_owned())
            }
        });
        let asked = async {
            assert!(
                join_all((0..50).map(|_| freshness.newest()))
                    .await
                    .iter()
                    .all(|one| *one == Ok(0))
            );
            assert_eq!(freshness.newest().await, Ok(1));
            assert_eq!(freshness.newest().await, Err("gone".to_owned()));
        };
        tokio::select! {
            () = answering => unreachable!("it can still be asked"),
            () = asked => {}
        }
        assert_eq!(
            (
                looked.load(Ordering::SeqCst),
                freshness.failed.load(Ordering::SeqCst)
            ),
            (3, 1)
        );
    }
}
