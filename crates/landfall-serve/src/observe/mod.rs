//! Observes requests: the access log, the metrics, and what clients asked for in vain.

mod access_log;
mod bodies;
mod metrics;
mod misses;

pub use self::access_log::{AccessLog, LogTarget};
pub(crate) use self::access_log::{RequestInfo, UserName};
pub(crate) use self::bodies::{ObservedResponseBody, TrackedRequestBody};
pub(crate) use self::metrics::RequestObserver;
pub(crate) use self::misses::Miss;
