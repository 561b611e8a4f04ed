//! Observes requests: the access log and the metrics.

mod access_log;
mod bodies;
mod metrics;

pub use self::access_log::{AccessLog, LogTarget};
pub(crate) use self::access_log::{RequestInfo, UserName};
pub(crate) use self::bodies::{ObservedResponseBody, TrackedRequestBody};
pub(crate) use self::metrics::RequestObserver;
