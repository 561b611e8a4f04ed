//! All open connections. If the table is full, a new connection closes one that is idle or whose
//! client is stalled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a client may be stalled before its connection is closed for a waiting client.
const STALL_GRACE: Duration = Duration::from_secs(2);

/// All open connections, with their limits.
pub(crate) struct ConnectionTable {
    max: usize,
    keep_alive: Duration,
    stall: Duration,
    start: Instant,
    open: Mutex<HashMap<u64, Arc<TrackedConnection>>>,
    next_id: AtomicU64,
    freed: Notify,
    /// The number of connections that the server closed for each [`CloseReason`].
    closed: [AtomicU64; 3],
}

/// One open connection, and the state of its client.
pub(crate) struct TrackedConnection {
    id: u64,
    start: Instant,
    /// When bytes were last sent, or received for a request in progress, in milliseconds since
    /// `start`. Received bytes of a TLS handshake or of a request's head do not count: a client
    /// could send them one by one to stay connected.
    last_progress: AtomicU64,
    /// Whether the last write had to wait, because the client takes no more bytes.
    unread: AtomicBool,
    /// Whether a request waits for bytes of its body that the client has not sent.
    body_awaited: AtomicBool,
    /// The number of requests in progress.
    requests: AtomicUsize,
    must_close: AtomicBool,
    close: Notify,
}

/// Counts a request as in progress as long as the guard lives.
pub(crate) struct RequestGuard(Arc<TrackedConnection>);

/// Why the server closes a connection. The order is that of [`CLOSE_REASONS`].
#[derive(Clone, Copy)]
enum CloseReason {
    Idle,
    Stalled,
    Room,
}

/// The words for [`CloseReason`] in the metrics.
const CLOSE_REASONS: [&str; 3] = ["idle", "stalled", "room"];

impl ConnectionTable {
    /// Allows at most `max` connections. Each may be idle for `keep_alive`, and its client may be
    /// stalled for `stall`.
    pub(crate) fn new(max: usize, keep_alive: Duration, stall: Duration) -> ConnectionTable {
        ConnectionTable {
            max,
            keep_alive,
            stall,
            start: Instant::now(),
            open: Mutex::default(),
            next_id: AtomicU64::new(0),
            freed: Notify::new(),
            closed: Default::default(),
        }
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.open().len()
    }

    /// How long a connection may be idle.
    pub(crate) fn keep_alive(&self) -> Duration {
        self.keep_alive
    }

    /// The number of connections that the server closed, by cause.
    pub(crate) fn closed_by_cause(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLOSE_REASONS.into_iter().zip(
            self.closed
                .iter()
                .map(|count| count.load(Ordering::Relaxed)),
        )
    }

    /// Adds a connection. While the table is full, closes idle or stalled connections and waits
    /// until one has ended.
    pub(crate) async fn add(&self) -> Arc<TrackedConnection> {
        loop {
            // registered before the check, so that a connection that closes meanwhile is not missed
            let freed = self.freed.notified();
            if let Some(connection) = self.try_add() {
                return connection;
            }
            self.make_room();
            // with a timeout: the chosen connection may close late, and another may be idle by then
            let _ = tokio::time::timeout(Duration::from_millis(100), freed).await;
        }
    }

    fn try_add(&self) -> Option<Arc<TrackedConnection>> {
        let mut open = self.open();
        if open.len() >= self.max {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(TrackedConnection {
            id,
            start: self.start,
            last_progress: AtomicU64::new(millis_since(self.start)),
            unread: AtomicBool::new(false),
            body_awaited: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            must_close: AtomicBool::new(false),
            close: Notify::new(),
        });
        open.insert(id, connection.clone());
        Some(connection)
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, connection: &TrackedConnection) {
        self.open().remove(&connection.id);
        self.freed.notify_waiters();
    }

    /// Closes the connection that has been idle for longest, or else the one whose client has been
    /// stalled for longest.
    fn make_room(&self) {
        let open = self.open();
        let longest_idle = staying(&open)
            .filter(|connection| connection.is_idle())
            .min_by_key(|connection| (connection.last_progress(), connection.id));
        if let Some(connection) = longest_idle.or_else(|| longest_stalled(staying(&open))) {
            self.close(connection, CloseReason::Room);
        }
    }

    /// Closes the connection whose client has been stalled for longest, so that a waiting request
    /// gets its permit.
    pub(crate) fn close_longest_stalled(&self) {
        let open = self.open();
        if let Some(connection) = longest_stalled(staying(&open)) {
            self.close(connection, CloseReason::Room);
        }
    }

    /// Closes connections that have been idle or stalled for too long, as long as the server runs.
    pub(crate) async fn close_expired(&self) {
        let interval = (self.keep_alive.min(self.stall) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            tokio::time::sleep(interval).await;
            for connection in self.open().values() {
                if connection.must_close() {
                    continue;
                }
                let without_progress = connection.without_progress();
                // a request that waits for its body is not closed here: pushes have a timeout
                if connection.is_unread() && without_progress >= self.stall {
                    self.close(connection, CloseReason::Stalled);
                } else if connection.is_idle() && without_progress >= self.keep_alive {
                    self.close(connection, CloseReason::Idle);
                }
            }
        }
    }

    fn close(&self, connection: &TrackedConnection, reason: CloseReason) {
        self.closed[reason as usize].fetch_add(1, Ordering::Relaxed);
        // before the notification: the connection reads the flag when it wakes up
        connection.must_close.store(true, Ordering::Release);
        connection.close.notify_one();
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<TrackedConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections that are not closing yet.
fn staying(
    open: &HashMap<u64, Arc<TrackedConnection>>,
) -> impl Iterator<Item = &Arc<TrackedConnection>> {
    open.values().filter(|connection| !connection.must_close())
}

fn longest_stalled<'a>(
    connections: impl Iterator<Item = &'a Arc<TrackedConnection>>,
) -> Option<&'a Arc<TrackedConnection>> {
    connections
        .filter(|connection| {
            connection.waits_for_client() && connection.without_progress() >= STALL_GRACE
        })
        .min_by_key(|connection| connection.last_progress())
}

fn millis_since(start: Instant) -> u64 {
    start.elapsed().as_millis() as u64
}

impl TrackedConnection {
    /// Records that bytes were received.
    pub(crate) fn received(&self) {
        // bytes outside of a request, such as a slow handshake, do not keep a connection open
        if self.requests.load(Ordering::Acquire) > 0 {
            self.record_progress();
        }
        self.body_awaited.store(false, Ordering::Relaxed);
    }

    /// Records that the client took bytes.
    pub(crate) fn sent(&self) {
        self.record_progress();
        self.unread.store(false, Ordering::Relaxed);
    }

    /// Records that the client takes no more bytes at the moment.
    pub(crate) fn not_read(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Records that a request waits for bytes of its body.
    pub(crate) fn waits_for_body(&self) {
        self.body_awaited.store(true, Ordering::Relaxed);
    }

    /// Counts a request as in progress until the guard is dropped.
    pub(crate) fn begin_request(self: &Arc<TrackedConnection>) -> RequestGuard {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.received();
        RequestGuard(self.clone())
    }

    /// Waits until the connection must close.
    pub(crate) async fn close_requested(&self) {
        self.close.notified().await;
    }

    pub(crate) fn must_close(&self) -> bool {
        self.must_close.load(Ordering::Acquire)
    }

    /// Whether the last write had to wait, because the client takes no more bytes.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    fn waits_for_client(&self) -> bool {
        self.is_unread() || self.body_awaited.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        // the last bytes of a response may still wait in hyper's buffer
        self.requests.load(Ordering::Acquire) == 0 && !self.is_unread()
    }

    fn record_progress(&self) {
        self.last_progress
            .store(millis_since(self.start), Ordering::Relaxed);
    }

    fn last_progress(&self) -> u64 {
        self.last_progress.load(Ordering::Relaxed)
    }

    fn without_progress(&self) -> Duration {
        Duration::from_millis(millis_since(self.start).saturating_sub(self.last_progress()))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        // the idle time of a connection counts from the end of its last response
        self.0.received();
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_ago(connection: &TrackedConnection, seconds: u64) {
        connection.last_progress.store(
            millis_since(connection.start).saturating_sub(seconds * 1000),
            Ordering::Relaxed,
        );
    }

    fn table(limit: usize) -> ConnectionTable {
        let mut table =
            ConnectionTable::new(limit, Duration::from_secs(100), Duration::from_secs(50));
        table.start -= Duration::from_secs(1000);
        table
    }

    #[tokio::test]
    async fn bytes_outside_of_a_request_do_not_count_as_activity() {
        let table = table(2);
        let first = table.add().await;
        let second = table.add().await;
        long_ago(&first, 9);
        long_ago(&second, 8);
        first.received();
        table.make_room();
        assert!(
            first.must_close() && !second.must_close(),
            "the bytes of a handshake or of a head are not progress"
        );
        let busy = second.begin_request();
        assert!(second.without_progress() < Duration::from_secs(8));
        long_ago(&second, 8);
        second.received();
        assert!(second.without_progress() < Duration::from_secs(8));
        drop(busy);
    }

    #[tokio::test]
    async fn the_longest_idle_connection_is_closed_first_and_then_the_longest_stalled_one() {
        let table = table(4);
        let older = table.add().await;
        let newer = table.add().await;
        let reads = table.add().await;
        let stalls = table.add().await;
        let _busy = (reads.begin_request(), stalls.begin_request());
        long_ago(&older, 9);
        long_ago(&newer, 8);
        stalls.not_read();
        long_ago(&stalls, 9);
        for (closed, kept) in [(&older, [&newer, &stalls]), (&newer, [&stalls, &reads])] {
            table.make_room();
            assert!(closed.must_close() && !kept.iter().any(|connection| connection.must_close()));
        }
        table.make_room();
        assert!(stalls.must_close() && !reads.must_close());
        table.make_room();
        assert!(
            !reads.must_close(),
            "a client that reads keeps its connection"
        );
        table.remove(&older);
        assert_eq!(
            (table.count(), table.add().await.must_close(), table.count()),
            (3, false, 4)
        );
    }
}
