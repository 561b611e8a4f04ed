//! What is counted while the server runs.

use super::request::Ended;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is counted while the server runs.
#[derive(Default)]
pub(in super::super) struct Metrics {
    /// By method and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(in super::super) bytes_sent: AtomicU64,
    micros: AtomicU64,
    pub(in super::super) reloads: AtomicU64,
    pub(in super::super) redirects: AtomicU64,
}

impl Metrics {
    /// A request has ended.
    pub(super) fn ended(&self, ended: &Ended<'_>) {
        let method = match ended.caller.method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "PUT" => "PUT",
            "POST" => "POST",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method, ended.status.as_u16())).or_default() += 1;
        self.bytes_sent.fetch_add(ended.bytes, Ordering::Relaxed);
        self.micros
            .fetch_add(ended.took.as_micros() as u64, Ordering::Relaxed);
    }

    /// How many requests there were, by method and status.
    pub(in super::super) fn requests(&self) -> BTreeMap<(&'static str, u16), u64> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How long they took together.
    pub(in super::super) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64()
    }
}
