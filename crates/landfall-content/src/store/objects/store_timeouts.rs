//! How long processes wait for other processes that use the same store.

use std::time::Duration;

/// How long a process waits for other processes that use the same store.
#[derive(Debug, Clone, Copy)]
pub struct StoreTimeouts {
    /// The interval at which a run renews its ownership of an upload.
    pub heartbeat: Duration,
    /// Another run may take over an upload when this time has passed since its last heartbeat.
    pub lease: Duration,
    /// How long a run waits for a `gc` that is deleting blobs that it needs.
    pub gc_wait: Duration,
}

impl StoreTimeouts {
    /// Returns the usual timeouts, with this limit for waiting for a `gc`.
    pub fn new(gc_wait: Duration) -> StoreTimeouts {
        StoreTimeouts {
            heartbeat: Duration::from_secs(4),
            // four heartbeats, so that one lost or late heartbeat does not cost the upload
            lease: Duration::from_secs(16),
            gc_wait,
        }
    }
}
