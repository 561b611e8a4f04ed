//! Records each completed request, in the counters of `/metrics` and in the access log.

use super::access_log::{AccessLog, CompletedRequest, combined_log_line};
use super::misses::MissList;
use jiff::Timestamp;
use landfall_model::locked;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Counters of the running server.
#[derive(Default)]
pub(crate) struct ServerMetrics {
    /// Completed requests by method and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    pub(crate) bytes_sent: AtomicU64,
    /// The duration of all requests together, in microseconds.
    micros: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) redirects: AtomicU64,
}

impl ServerMetrics {
    pub(super) fn record(&self, completed: &CompletedRequest<'_>) {
        // clients may invent methods, which must not become time series of their own
        let method = match completed.request.method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "PUT" => "PUT",
            "POST" => "POST",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let key = (method, completed.status.as_u16());
        *self.lock_requests().entry(key).or_default() += 1;
        self.bytes_sent
            .fetch_add(completed.bytes, Ordering::Relaxed);
        self.micros
            .fetch_add(completed.duration.as_micros() as u64, Ordering::Relaxed);
    }

    /// The number of completed requests by method and status.
    pub(crate) fn requests(&self) -> BTreeMap<(&'static str, u16), u64> {
        self.lock_requests().clone()
    }

    /// The duration of all requests together, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64()
    }

    fn lock_requests(&self) -> MutexGuard<'_, BTreeMap<(&'static str, u16), u64>> {
        locked(&self.requests)
    }
}

/// The metrics, the misses, and the access log if there is one.
pub(crate) struct RequestObserver {
    pub(crate) metrics: ServerMetrics,
    pub(crate) misses: MissList,
    pub(crate) log: Option<AccessLog>,
}

impl RequestObserver {
    pub(crate) fn new(log: Option<AccessLog>) -> RequestObserver {
        RequestObserver {
            metrics: ServerMetrics::default(),
            misses: MissList::default(),
            log,
        }
    }

    /// Counts the request and writes its log line.
    pub(super) fn record(&self, completed: &CompletedRequest<'_>) {
        self.metrics.record(completed);
        if let Some(log) = &self.log {
            log.write(combined_log_line(completed, Timestamp::now()));
        }
    }
}
