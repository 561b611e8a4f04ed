//! Records each completed request in the metrics and in the access log.

use super::access_log::{AccessLog, combined_log_line};
use super::metrics::ServerMetrics;
use super::request_info::CompletedRequest;
use jiff::Timestamp;

/// The metrics, and the access log if there is one.
pub(crate) struct RequestObserver {
    pub(crate) metrics: ServerMetrics,
    pub(crate) log: Option<AccessLog>,
}

impl RequestObserver {
    pub(crate) fn new(log: Option<AccessLog>) -> RequestObserver {
        RequestObserver {
            metrics: ServerMetrics::default(),
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
