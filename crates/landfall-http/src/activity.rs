//! Tells a run that is waiting for the network from one that is stuck: counts requests, bodies and
//! pauses that will end by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a run waits for that ends by itself: a request in flight, a body, a pause before another
/// attempt. Each of them has a limit in time.
#[derive(Debug, Clone, Default)]
pub struct Activity(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    busy: AtomicUsize,
    ended: AtomicU64,
}

/// Something that will end by itself; ended when dropped.
#[derive(Debug)]
pub struct ActivityGuard(Activity);

/// A look at an [`Activity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivitySnapshot {
    /// How many things are under way.
    pub busy: usize,
    ended: u64,
}

impl Activity {
    /// Something begins that will end by itself.
    pub fn busy(&self) -> ActivityGuard {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        ActivityGuard(self.clone())
    }

    /// What is under way now. Two looks are equal if nothing ended between them.
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
