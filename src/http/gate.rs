//! One gate a host, shared by all workers: how many requests at once, and a pause when the host asks
//! for one.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The gate of one host.
#[derive(Debug)]
pub(super) struct Gate {
    slots: Arc<Semaphore>,
    closed_until: Mutex<Option<Instant>>,
}

impl Gate {
    pub(super) fn new(slots: usize) -> Gate {
        Gate { slots: Arc::new(Semaphore::new(slots.max(1))), closed_until: Mutex::new(None) }
    }

    /// Waits for a slot, and until the host's pause is over.
    pub(super) async fn enter(&self) -> OwnedSemaphorePermit {
        let slot = self.slots.clone().acquire_owned().await;
        // the semaphore is never closed
        let slot = slot.unwrap_or_else(|_| unreachable!("a gate's semaphore stays open"));
        loop {
            let until = self.closed_until.lock().ok().and_then(|until| *until);
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return slot,
            }
        }
    }

    /// Lets nobody in for so long.
    pub(super) fn close_for(&self, pause: Duration) {
        if let Ok(mut until) = self.closed_until.lock() {
            let new = Instant::now() + pause;
            *until = Some(until.map_or(new, |old| old.max(new)));
        }
    }
}
