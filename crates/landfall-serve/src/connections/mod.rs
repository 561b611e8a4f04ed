//! Connections and requests in flight, both of which are limited.
//!
//! A connection that is idle, or whose client is stalled, is closed after a timeout
//! (`--keep-alive`, `--stall`). If a new connection is waiting, the connection that has been idle
//! for longest is closed at once. If none is idle, or if a request is waiting for a permit, the
//! connection whose client has been stalled for longest is closed, after a short grace period.

mod tracked_stream;

use landfall_model::locked;
use landfall_os::raise_open_files;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

pub(crate) use self::tracked_stream::{SendfileQueue, TrackedStream};

/// How long a client may be stalled before its connection is closed for a waiting client.
const STALL_GRACE: Duration = Duration::from_secs(2);

/// The minimum number of bytes that a client must send or receive in each second in which the
/// server waits for it. Without a minimum, single bytes would keep a connection and a permit.
const MIN_BYTES_PER_SECOND: u64 = 1000;

/// All open connections, with their limits.
pub(crate) struct ConnectionTable {
    max: usize,
    /// How long a connection may be idle.
    pub(crate) keep_alive: Duration,
    stall: Duration,
    open: Mutex<HashMap<u64, Arc<TrackedConnection>>>,
    next_id: AtomicU64,
    freed: Notify,
    /// The number of connections that the server closed for each [`CloseReason`].
    closed: [AtomicU64; 3],
}

/// One open connection, and the state of its client.
pub(crate) struct TrackedConnection {
    id: u64,
    progress: Mutex<ClientProgress>,
    must_close: AtomicBool,
    close: Notify,
}

/// What the server waits for at a connection, and for how long.
struct ClientProgress {
    /// The number of requests in progress.
    requests: usize,
    /// Whether the last write had to wait, because the client takes no more bytes.
    is_unread: bool,
    /// Whether a request waits for bytes of its body that the client has not sent.
    is_body_awaited: bool,
    /// Whether the current or last request was answered without reading its body to the end.
    is_body_ignored: bool,
    /// When the server began to wait for the client. `None` while the server itself works.
    waits_since: Option<Instant>,
    /// How long the server has waited in this request before, less the time that the bytes since
    /// then are worth ([`MIN_BYTES_PER_SECOND`]).
    waited: Duration,
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
            open: Mutex::default(),
            next_id: AtomicU64::new(0),
            freed: Notify::new(),
            closed: Default::default(),
        }
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        locked(&self.open).len()
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
        let mut open = locked(&self.open);
        if open.len() >= self.max {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(TrackedConnection {
            id,
            progress: Mutex::new(ClientProgress {
                requests: 0,
                is_unread: false,
                is_body_awaited: false,
                is_body_ignored: false,
                waits_since: Some(Instant::now()),
                waited: Duration::ZERO,
            }),
            must_close: AtomicBool::new(false),
            close: Notify::new(),
        });
        open.insert(id, connection.clone());
        Some(connection)
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, connection: &TrackedConnection) {
        locked(&self.open).remove(&connection.id);
        self.freed.notify_waiters();
    }

    /// Closes the connection that has been idle for longest, or else the one whose client has been
    /// stalled for longest.
    fn make_room(&self) {
        let open = locked(&self.open);
        let longest_idle = staying(&open)
            .filter(|connection| connection.is_idle())
            .max_by_key(|connection| (connection.waiting_time(), Reverse(connection.id)));
        if let Some(connection) = longest_idle.or_else(|| longest_stalled(staying(&open))) {
            self.close(connection, CloseReason::Room);
        }
    }

    /// Closes the connection whose client has been stalled for longest, so that a waiting request
    /// gets its permit.
    pub(crate) fn close_longest_stalled(&self) {
        let open = locked(&self.open);
        if let Some(connection) = longest_stalled(staying(&open)) {
            self.close(connection, CloseReason::Room);
        }
    }

    /// Closes connections that have been idle or stalled for too long, as long as the server runs.
    pub(crate) async fn close_expired(&self) {
        let interval = (self.keep_alive.min(self.stall) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            sleep(interval).await;
            for connection in locked(&self.open).values() {
                if connection.must_close() {
                    continue;
                }
                let waiting = connection.waiting_time();
                if connection.waits_for_client() && waiting >= self.stall {
                    self.close(connection, CloseReason::Stalled);
                } else if connection.is_idle() && waiting >= self.keep_alive {
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
        .filter(|connection| connection.waits_for_client())
        .map(|connection| (connection.waiting_time(), connection))
        .filter(|(waiting, _)| *waiting >= STALL_GRACE)
        .max_by_key(|(waiting, _)| *waiting)
        .map(|(_, connection)| connection)
}

impl TrackedConnection {
    /// Records that `bytes` bytes were received.
    pub(crate) fn received(&self, bytes: usize) {
        let mut progress = locked(&self.progress);
        // bytes outside of a request, such as a slow handshake or a slow head, do not keep a
        // connection open
        if progress.requests > 0 {
            progress.is_body_awaited = false;
            progress.moved(bytes);
        }
    }

    /// Records that the client took `bytes` bytes.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut progress = locked(&self.progress);
        progress.is_unread = false;
        progress.moved(bytes);
    }

    /// Records that the client takes no more bytes at the moment.
    pub(crate) fn not_read(&self) {
        let mut progress = locked(&self.progress);
        progress.is_unread = true;
        progress.wait();
    }

    /// Records that a request waits for bytes of its body.
    pub(crate) fn waits_for_body(&self) {
        let mut progress = locked(&self.progress);
        progress.is_body_awaited = true;
        progress.wait();
    }

    /// Records that the rest of a request's body will not be read.
    pub(crate) fn ignores_body(&self) {
        locked(&self.progress).is_body_ignored = true;
    }

    /// Whether the client may still be sending a body that nobody reads.
    fn has_ignored_body(&self) -> bool {
        locked(&self.progress).is_body_ignored
    }

    /// Counts a request as in progress until the guard is dropped.
    pub(crate) fn begin_request(self: &Arc<TrackedConnection>) -> RequestGuard {
        let mut progress = locked(&self.progress);
        progress.requests += 1;
        progress.is_body_ignored = false;
        progress.restart();
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
        locked(&self.progress).is_unread
    }

    fn waits_for_client(&self) -> bool {
        let progress = locked(&self.progress);
        progress.is_unread || progress.is_body_awaited
    }

    fn is_idle(&self) -> bool {
        let progress = locked(&self.progress);
        // the last bytes of a response may still wait in hyper's buffer
        progress.requests == 0 && !progress.is_unread
    }

    /// How long the server has waited for this client without enough progress.
    fn waiting_time(&self) -> Duration {
        locked(&self.progress).waiting_time()
    }
}

impl ClientProgress {
    fn wait(&mut self) {
        self.waits_since.get_or_insert_with(Instant::now);
    }

    fn waiting_time(&self) -> Duration {
        let now = self.waits_since.map(|since| since.elapsed());
        self.waited + now.unwrap_or_default()
    }

    fn moved(&mut self, bytes: usize) {
        let worth = Duration::from_millis(bytes as u64 * 1000 / MIN_BYTES_PER_SECOND);
        self.waited = self.waiting_time().saturating_sub(worth);
        let waits = self.is_unread || self.is_body_awaited || self.requests == 0;
        self.waits_since = waits.then(Instant::now);
    }

    /// Begins to measure anew, because a request began or ended.
    fn restart(&mut self) {
        self.is_body_awaited = false;
        self.waited = Duration::ZERO;
        let waits = self.is_unread || self.requests == 0;
        self.waits_since = waits.then(Instant::now);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut progress = locked(&self.0.progress);
        progress.requests -= 1;
        // the idle time of a connection counts from the end of its last response
        progress.restart();
    }
}

/// The number of open files that belong to no connection or request: bundles, the log, the runtime.
const OTHER_FILES: u64 = 64;

/// Raises the limit on open files as far as the process may, and returns how many connections are
/// possible: `connections`, or fewer if these and the files of `requests` do not all fit.
pub(crate) fn possible_connections(connections: usize, requests: usize) -> usize {
    let Some(files) = raise_open_files() else {
        return connections;
    };
    let available = files.saturating_sub(OTHER_FILES) as usize;
    // each request may open a file of its own; at most half of the available files are reserved
    // for requests
    let for_requests = requests.min(available / 2);
    connections
        .min(available.saturating_sub(for_requests))
        .max(1)
}

// Limits the number of requests in progress, and the memory of their answers.

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
pub(crate) type RequestPermit = OwnedSemaphorePermit;

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
                permit = &mut permit => return permit.ok(),
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

    /// Puts the last progress of a connection into the past.
    fn long_ago(connection: &TrackedConnection, seconds: u64) {
        locked(&connection.progress).waited += Duration::from_secs(seconds);
    }

    fn table(limit: usize) -> ConnectionTable {
        ConnectionTable::new(limit, Duration::from_secs(100), Duration::from_secs(50))
    }

    #[tokio::test]
    async fn bytes_outside_of_a_request_do_not_count_as_activity() {
        let table = table(2);
        let first = table.add().await;
        let second = table.add().await;
        long_ago(&first, 9);
        long_ago(&second, 8);
        first.received(1 << 20);
        table.make_room();
        assert!(
            first.must_close() && !second.must_close(),
            "the bytes of a handshake or of a head are not progress"
        );
        let busy = second.begin_request();
        assert!(second.waiting_time() < Duration::from_secs(8));
        long_ago(&second, 8);
        second.received(1 << 20);
        assert!(second.waiting_time() < Duration::from_secs(8));
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

    #[tokio::test]
    async fn a_client_must_move_a_minimum_of_bytes_while_the_server_waits_for_it() {
        let table = table(2);
        let [trickles, sends] = [table.add().await, table.add().await];
        let _busy = [&trickles, &sends].map(TrackedConnection::begin_request);
        for _ in 0..3 {
            for connection in [&trickles, &sends] {
                connection.waits_for_body();
                long_ago(connection, 1);
            }
            trickles.received(1);
            sends.received(MIN_BYTES_PER_SECOND as usize);
        }
        trickles.waits_for_body();
        sends.waits_for_body();
        for _ in 0..2 {
            table.close_longest_stalled();
            assert!(trickles.must_close() && !sends.must_close());
        }
        // the time in which the server works does not count
        sends.received(1);
        assert_eq!(locked(&sends.progress).waits_since, None);
    }

    #[tokio::test]
    async fn answers_share_the_limit_of_memory() {
        let connections = table(9);
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
        let connections = table(9);
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
