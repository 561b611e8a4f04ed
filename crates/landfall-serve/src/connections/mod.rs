//! Connections and requests in flight, both of which are limited.
//!
//! A connection that is idle, or whose client is stalled, is closed after a timeout
//! (`--keep-alive`, `--stall`). If a new connection is waiting, the connection that has been idle
//! for longest is closed at once. If none is idle, or if a request is waiting for a permit, the
//! connection whose client has been stalled for longest is closed, after a short grace period.

mod connection_table;
mod request_limiter;
mod tracked_stream;

pub(crate) use self::connection_table::{
    ConnectionTable, RequestGuard, TrackedConnection, raise_open_files,
};
pub(crate) use self::request_limiter::{RequestLimiter, RequestPermit};
pub(crate) use self::tracked_stream::{SendfileQueue, TrackedStream};
