//! All open connections, and which of them has to go: one that is idle, or whose client does not
//! read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a client may stand still before its answer may be broken off for somebody who waits.
const GRACE: Duration = Duration::from_secs(2);

/// All open connections.
pub(in super::super) struct Seats {
    most: usize,
    idle: Duration,
    stall: Duration,
    start: Instant,
    open: Mutex<HashMap<u64, Arc<Seat>>>,
    next: AtomicU64,
    freed: Notify,
    /// Connections that were closed because they were idle too long, or stalled too long, or for
    /// somebody who waited.
    pub(in super::super) closed: [AtomicU64; 3],
}

/// One connection.
pub(in super::super) struct Seat {
    id: u64,
    start: Instant,
    /// When bytes went last, or came for a request in progress, in milliseconds since the start.
    /// The bytes of a TLS handshake or of a request's head do not count: a client could send them
    /// one by one.
    moved: AtomicU64,
    /// Whether the client has not taken what was written last.
    unread: AtomicBool,
    /// Whether the client has not sent the bytes that are waited for.
    awaited: AtomicBool,
    /// Requests in progress.
    busy: AtomicUsize,
    leaves: AtomicBool,
    told: Notify,
}

/// Marks a connection as busy with a request as long as it lives.
pub(in super::super) struct Busy(Arc<Seat>);

/// Why a connection has to go: the place of its count in [`Seats::closed`].
#[derive(Clone, Copy)]
enum Why {
    Idle,
    Stalled,
    Room,
}

impl Seats {
    /// At most `most` connections, idle for at most `idle`, with a client that does not read for at
    /// most `stall`.
    pub(in super::super) fn new(most: usize, idle: Duration, stall: Duration) -> Seats {
        Seats {
            most,
            idle,
            stall,
            start: Instant::now(),
            open: Mutex::default(),
            next: AtomicU64::new(0),
            freed: Notify::new(),
            closed: Default::default(),
        }
    }

    /// How many connections are open.
    pub(in super::super) fn count(&self) -> usize {
        self.open().len()
    }

    /// How long a connection may be idle.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// A seat for one more connection. Where all are taken, the one that needs its seat least has
    /// to go.
    pub(super) async fn take(&self) -> Arc<Seat> {
        loop {
            let freed = self.freed.notified();
            if let Some(seat) = self.free() {
                return seat;
            }
            self.make_room();
            let _ = tokio::time::timeout(Duration::from_millis(100), freed).await;
        }
    }

    fn free(&self) -> Option<Arc<Seat>> {
        let mut open = self.open();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (open.len() < self.most).then(|| {
            let seat = Arc::new(Seat {
                id,
                start: self.start,
                moved: AtomicU64::new(since(self.start)),
                unread: AtomicBool::new(false),
                awaited: AtomicBool::new(false),
                busy: AtomicUsize::new(0),
                leaves: AtomicBool::new(false),
                told: Notify::new(),
            });
            open.insert(id, seat.clone());
            seat
        })
    }

    /// Gives a seat back.
    pub(super) fn leave(&self, seat: &Seat) {
        self.open().remove(&seat.id);
        self.freed.notify_waiters();
    }

    /// Ends the connection that has been idle for longest, or else the one whose client has stood
    /// still for longest.
    fn make_room(&self) {
        let open = self.open();
        let staying = || open.values().filter(|seat| !seat.leaves());
        let idle = staying().filter(|seat| seat.is_idle());
        if let Some(seat) = idle.min_by_key(|seat| (seat.moved(), seat.id)) {
            self.close(seat, Why::Room);
        } else if let Some(seat) = longest_stalled(staying()) {
            self.close(seat, Why::Room);
        }
    }

    /// Ends the request whose client has stood still for longest: somebody waits for its place in
    /// flight.
    pub(super) fn end_stalled(&self) {
        let open = self.open();
        if let Some(seat) = longest_stalled(open.values().filter(|seat| !seat.leaves())) {
            self.close(seat, Why::Room);
        }
    }

    /// Ends connections that have been idle or stalled for too long, as long as the server runs.
    pub(super) async fn sweep(&self) {
        let step = (self.idle.min(self.stall) / 4)
            .clamp(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            tokio::time::sleep(step).await;
            for seat in self.open().values().filter(|seat| !seat.leaves()) {
                let still = seat.still();
                if seat.is_unread() && still >= self.stall {
                    self.close(seat, Why::Stalled);
                } else if seat.is_idle() && still >= self.idle {
                    self.close(seat, Why::Idle);
                }
            }
        }
    }

    fn close(&self, seat: &Seat, why: Why) {
        self.closed[why as usize].fetch_add(1, Ordering::Relaxed);
        seat.leaves.store(true, Ordering::Release);
        seat.told.notify_one();
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn longest_stalled<'a>(seats: impl Iterator<Item = &'a Arc<Seat>>) -> Option<&'a Arc<Seat>> {
    seats
        .filter(|seat| seat.waits_for_client() && seat.still() >= GRACE)
        .min_by_key(|seat| seat.moved())
}

fn since(start: Instant) -> u64 {
    start.elapsed().as_millis() as u64
}

impl Seat {
    /// Bytes came.
    pub(super) fn received(&self) {
        if self.busy.load(Ordering::Acquire) > 0 {
            self.moved.store(since(self.start), Ordering::Relaxed);
        }
        self.awaited.store(false, Ordering::Relaxed);
    }

    /// Bytes went.
    pub(super) fn sent(&self) {
        self.moved.store(since(self.start), Ordering::Relaxed);
        self.unread.store(false, Ordering::Relaxed);
    }

    /// The client takes no more bytes now.
    pub(super) fn is_not_read(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// A request waits for bytes of its body.
    pub(super) fn awaits(&self) {
        self.awaited.store(true, Ordering::Relaxed);
    }

    /// A request begins.
    pub(super) fn begin(self: &Arc<Seat>) -> Busy {
        self.busy.fetch_add(1, Ordering::AcqRel);
        self.received();
        Busy(self.clone())
    }

    /// Waits until the connection has to go.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    /// Whether the connection has to go.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// Whether the client has bytes to take.
    pub(super) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Whether it is the client that has to go on.
    fn waits_for_client(&self) -> bool {
        self.is_unread() || self.awaited.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        // what was written last may still be on its way
        self.busy.load(Ordering::Acquire) == 0 && !self.is_unread()
    }

    fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    fn still(&self) -> Duration {
        Duration::from_millis(since(self.start).saturating_sub(self.moved()))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // an idle connection counts from the end of its last answer
        self.0.received();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_ago(seat: &Seat, seconds: u64) {
        seat.moved.store(
            since(seat.start).saturating_sub(seconds * 1000),
            Ordering::Relaxed,
        );
    }

    fn seats(most: usize) -> Seats {
        let mut seats = Seats::new(most, Duration::from_secs(100), Duration::from_secs(50));
        seats.start -= Duration::from_secs(1000);
        seats
    }

    #[tokio::test]
    async fn bytes_outside_of_a_request_keep_no_connection_young() {
        let seats = seats(2);
        let (first, second) = (seats.take().await, seats.take().await);
        long_ago(&first, 9);
        long_ago(&second, 8);
        first.received();
        seats.make_room();
        assert!(
            first.leaves() && !second.leaves(),
            "a handshake or a head, byte by byte"
        );
        let busy = second.begin();
        assert!(second.still() < Duration::from_secs(8));
        long_ago(&second, 8);
        second.received();
        assert!(second.still() < Duration::from_secs(8));
        drop(busy);
    }

    #[tokio::test]
    async fn the_connection_that_is_idle_for_longest_goes_first_and_then_the_one_that_stands_still_for_longest()
     {
        let seats = seats(4);
        let (older, newer) = (seats.take().await, seats.take().await);
        let (reads, stalls) = (seats.take().await, seats.take().await);
        let _busy = (reads.begin(), stalls.begin());
        long_ago(&older, 9);
        long_ago(&newer, 8);
        stalls.is_not_read();
        long_ago(&stalls, 9);
        for (goes, stay) in [(&older, [&newer, &stalls]), (&newer, [&stalls, &reads])] {
            seats.make_room();
            assert!(goes.leaves() && !stay.iter().any(|seat| seat.leaves()));
        }
        seats.make_room();
        assert!(stalls.leaves() && !reads.leaves());
        seats.make_room();
        assert!(!reads.leaves(), "who reads stays, whoever waits");
        seats.leave(&older);
        assert_eq!(
            (seats.count(), seats.take().await.leaves(), seats.count()),
            (3, false, 4)
        );
    }
}
