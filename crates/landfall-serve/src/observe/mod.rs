//! What a server tells about its requests: the access log, and the counts for the metrics.

mod access_log;
mod bodies;
mod metrics;
mod observer;
mod request;

pub use access_log::{AccessLog, LogTarget};
pub(super) use bodies::{AwaitedBody, ObservedBody};
pub(super) use observer::Observer;
pub(super) use request::{Caller, User};
