//! Limits the number of requests in progress, and the memory of their answers.

use super::connection_table::ConnectionTable;
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
        let deadline = Instant::now() + PATIENCE;
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
