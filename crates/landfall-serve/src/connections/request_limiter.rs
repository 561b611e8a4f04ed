//! Limits the number of requests in progress, and the memory of their answers.

use super::ConnectionTable;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// How long a request waits for a permit before it is answered with 503.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a waiting request looks for a stalled connection to close.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Limits what the requests in progress use together: permits, each from the end of the
/// authentication of a request to the last byte of its response, or memory, in KiB.
pub(crate) struct RequestLimiter {
    max: usize,
    permits: Arc<Semaphore>,
    patience: Duration,
}

/// The permits of a request. The request holds them until its response has ended.
pub(crate) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
}

impl RequestLimiter {
    /// Allows at most `max` permits at the same time.
    pub(crate) fn new(max: usize) -> RequestLimiter {
        RequestLimiter {
            max,
            permits: Arc::new(Semaphore::new(max)),
            patience: PATIENCE,
        }
    }

    /// The number of permits in use.
    pub(crate) fn count(&self) -> usize {
        self.max - self.permits.available_permits()
    }

    /// Waits for `count` permits, or for all if there are fewer; first come, first served.
    /// Meanwhile it closes connections whose clients are stalled. Returns `None` if the wait takes
    /// too long.
    pub(crate) async fn enter(
        &self,
        connections: &ConnectionTable,
        count: u64,
    ) -> Option<RequestPermit> {
        let deadline = Instant::now() + self.patience;
        let count = count.min(self.max as u64) as u32;
        // pinned outside of the loop, so that the request keeps its position in the semaphore's
        // queue
        let permit = self.permits.clone().acquire_many_owned(count);
        tokio::pin!(permit);
        loop {
            tokio::select! {
                // a permit that is free is taken even if the deadline has passed
                biased;
                permit = &mut permit => {
                    return permit.ok().map(|permit| RequestPermit { _permit: permit });
                }
                () = sleep(CHECK_INTERVAL) => connections.close_longest_stalled(),
            }
            if Instant::now() >= deadline {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::ANSWER_MEMORY;

    fn table() -> ConnectionTable {
        ConnectionTable::new(9, Duration::from_secs(100), Duration::from_secs(50))
    }

    #[tokio::test]
    async fn answers_share_the_limit_of_memory() {
        let connections = table();
        let memory = RequestLimiter {
            patience: Duration::ZERO,
            ..RequestLimiter::new(ANSWER_MEMORY)
        };
        // four answers of 100 MiB fit into 512 MiB together with another, and no sixth
        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(memory.enter(&connections, 100 << 10).await.unwrap());
        }
        assert_eq!(memory.count(), 500 << 10);
        assert!(memory.enter(&connections, 100 << 10).await.is_none());
        answers.pop();
        answers.push(memory.enter(&connections, 100 << 10).await.unwrap());
        drop(answers);
        // an answer that is larger than the limit has all of it, and is alone
        let large = memory.enter(&connections, u64::MAX).await.unwrap();
        assert_eq!(memory.count(), ANSWER_MEMORY);
        assert!(memory.enter(&connections, 1).await.is_none());
        drop(large);
        assert_eq!(memory.count(), 0);
    }

    #[tokio::test]
    async fn a_stalled_client_loses_its_answer_while_another_one_waits() {
        let connections = table();
        let stalled = connections.add().await;
        let _request = stalled.begin_request();
        stalled.not_read();
        let memory = RequestLimiter::new(1);
        let held = memory.enter(&connections, 1).await;
        let waiting = memory.enter(&connections, 1);
        let closing = async {
            while !stalled.must_close() {
                sleep(Duration::from_millis(5)).await;
            }
            drop(held);
        };
        let (permit, ()) = tokio::join!(waiting, closing);
        assert!(permit.is_some());
    }
}
