//! How long a process waits for others that use the same store.

use std::time::Duration;

/// How long a process waits for others that use the same store.
#[derive(Debug, Clone, Copy)]
pub struct StoreTimeouts {
    /// How often a run says that it goes on with an upload.
    pub beat: Duration,
    /// After how long without that another run goes on with it.
    pub lease: Duration,
    /// How long a run waits for a `gc` that deletes what it needs.
    pub deletions: Duration,
}

impl StoreTimeouts {
    /// The usual one, with the longest wait for a `gc`.
    pub fn new(deletions: Duration) -> StoreTimeouts {
        StoreTimeouts {
            beat: Duration::from_secs(4),
            lease: Duration::from_secs(16),
            deletions,
        }
    }
}
