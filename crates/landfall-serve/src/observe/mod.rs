//! Observes requests: the access log and the metrics.

mod access_log;
mod bodies;
mod metrics;
mod request_info;
mod request_observer;

pub use access_log::{AccessLog, LogTarget};
pub(crate) use bodies::{ObservedResponseBody, TrackedRequestBody};
pub(crate) use request_info::{RequestInfo, UserName};
pub(crate) use request_observer::RequestObserver;
