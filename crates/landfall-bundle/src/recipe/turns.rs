//! Limits how many threads rebuild blobs at the same time.

use landfall_model::locked;
use std::sync::{Condvar, Mutex, PoisonError};

/// Limits how many threads have a turn at the same time.
pub(super) struct RebuildTurns {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A turn, which ends when it is dropped.
pub(super) struct RebuildTurn<'a>(&'a RebuildTurns);

impl RebuildTurns {
    pub(super) fn new(count: usize) -> RebuildTurns {
        RebuildTurns {
            free: Mutex::new(count),
            freed: Condvar::new(),
        }
    }

    pub(super) fn take(&self) -> RebuildTurn<'_> {
        let mut free = self
            .freed
            .wait_while(locked(&self.free), |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        RebuildTurn(self)
    }
}

impl Drop for RebuildTurn<'_> {
    fn drop(&mut self) {
        *locked(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}
