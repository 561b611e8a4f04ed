//! Who is told of each request that ended.

use super::access_log::{AccessLog, line};
use super::metrics::Metrics;
use super::request::Ended;
use jiff::Timestamp;

/// The metrics, and the access log where there is one.
pub(in super::super) struct Observer {
    pub(in super::super) metrics: Metrics,
    pub(in super::super) log: Option<AccessLog>,
}

impl Observer {
    /// Nothing is counted yet.
    pub(in super::super) fn new(log: Option<AccessLog>) -> Observer {
        Observer {
            metrics: Metrics::default(),
            log,
        }
    }

    /// A request has ended.
    pub(super) fn ended(&self, ended: &Ended<'_>) {
        self.metrics.ended(ended);
        if let Some(log) = &self.log {
            log.write(line(ended, Timestamp::now()));
        }
    }
}
