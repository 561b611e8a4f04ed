//! Connections and requests in flight, both of which are limited.
//!
//! A connection that is idle, or whose client is stalled, is closed after a timeout
//! (`--keep-alive`, `--stall`). If a new connection is waiting, the connection that has been idle
//! for longest is closed at once. If none is idle, or if a request is waiting for a permit, the
//! connection whose client has been stalled for longest is closed, after a short grace period.

mod connection_table;
mod open_files;
mod request_limiter;
mod sendfile_queue;
mod tracked_stream;

pub(crate) use connection_table::{ConnectionTable, RequestGuard, TrackedConnection};
pub(crate) use open_files::raise_open_files;
pub(crate) use request_limiter::{RequestLimiter, RequestPermit};
pub(crate) use sendfile_queue::SendfileQueue;
pub(crate) use tracked_stream::TrackedStream;
