//! The slots of running transfers, and the hosts that those transfers wait for.

use landfall_http::LendableSlot;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The right to run one transfer. Dropping it returns the slot. The slot is lent to other transfers
/// while this transfer waits for its source.
#[derive(Debug)]
pub struct TransferSlot {
    from: Arc<Semaphore>,
    /// `None` while the slot is lent. If no slot is free when it is reclaimed, the transfer
    /// continues without a slot, and this stays `None`.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    hosts: Arc<HostLoad>,
    host: Arc<str>,
}

impl TransferSlot {
    /// Returns a slot for a transfer that reads from `host`, with this `permit` of the semaphore
    /// `from`.
    pub(super) fn new(
        from: Arc<Semaphore>,
        permit: OwnedSemaphorePermit,
        hosts: Arc<HostLoad>,
        host: Arc<str>,
    ) -> TransferSlot {
        hosts.begin(&host);
        TransferSlot {
            from,
            permit: Mutex::new(Some(permit)),
            hosts,
            host,
        }
    }

    fn permit(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        locked(&self.permit)
    }
}

impl LendableSlot for TransferSlot {
    fn lend(&self) {
        drop(self.permit().take());
        self.hosts.wait(&self.host);
    }

    fn reclaim(&self) {
        // does not wait: the transfer has data to read, and would stall its connection
        *self.permit() = self.from.clone().try_acquire_owned().ok();
        self.hosts.resume(&self.host);
    }
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        drop(self.permit().take());
        self.hosts.end(&self.host);
    }
}

/// The number of running transfers per host, and how many of them wait for their host.
#[derive(Debug, Default)]
pub struct HostLoad {
    loads: Mutex<HashMap<Arc<str>, Load>>,
    changed: Notify,
}

#[derive(Debug, Default, Clone, Copy)]
struct Load {
    begun: usize,
    waiting: usize,
}

impl HostLoad {
    fn loads(&self) -> MutexGuard<'_, HashMap<Arc<str>, Load>> {
        locked(&self.loads)
    }

    fn change(&self, host: &Arc<str>, change: impl FnOnce(&mut Load)) {
        change(self.loads().entry(host.clone()).or_default());
        self.changed.notify_one();
    }

    /// Counts a transfer from `host` that begins.
    pub fn begin(&self, host: &Arc<str>) {
        self.change(host, |load| load.begun += 1);
    }

    /// Counts a transfer that waits for `host`.
    pub fn wait(&self, host: &Arc<str>) {
        self.change(host, |load| load.waiting += 1);
    }

    /// Counts a transfer that no longer waits for `host`.
    pub fn resume(&self, host: &Arc<str>) {
        self.change(host, |load| load.waiting -= 1);
    }

    /// Counts a transfer from `host` that ends.
    pub fn end(&self, host: &Arc<str>) {
        self.change(host, |load| load.begun -= 1);
    }

    /// Whether running transfers wait for this host.
    pub fn is_waited_for(&self, host: &str) -> bool {
        self.loads().get(host).is_some_and(|load| load.waiting > 0)
    }

    /// Returns the number of running transfers from this host.
    pub fn begun(&self, host: &str) -> usize {
        self.loads().get(host).map_or(0, |load| load.begun)
    }

    /// Waits until the load of a host has changed since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}
