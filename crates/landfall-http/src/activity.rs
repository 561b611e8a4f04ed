//! Distinguishes a run that waits or works from one that is stuck: counts the requests, bodies,
//! pauses and long local work under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts what a run waits for: requests in flight, bodies, pauses before another attempt, and long
/// local work such as the writing of git packs. Requests, bodies and pauses have time limits, so
/// they end by themselves.
#[derive(Debug, Clone, Default)]
pub struct Activity(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    busy: AtomicUsize,
    ended: AtomicU64,
}

/// Counts a request, a body, a pause or local work as under way until it is dropped.
#[derive(Debug)]
pub struct ActivityGuard(Activity);

/// The counts of an [`Activity`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivitySnapshot {
    /// The number of requests, bodies, pauses and pieces of local work under way.
    pub busy: usize,
    ended: u64,
}

impl Activity {
    /// Counts a request, a body, a pause or local work as under way until the guard is dropped.
    pub fn busy(&self) -> ActivityGuard {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        ActivityGuard(self.clone())
    }

    /// Returns the current counts. Two equal snapshots mean that nothing began or ended between
    /// them.
    pub fn snapshot(&self) -> ActivitySnapshot {
        ActivitySnapshot {
            busy: self.0.busy.load(Ordering::Relaxed),
            ended: self.0.ended.load(Ordering::Relaxed),
        }
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let Counters { busy, ended } = &*self.0.0;
        ended.fetch_add(1, Ordering::Relaxed);
        busy.fetch_sub(1, Ordering::Relaxed);
    }
}
