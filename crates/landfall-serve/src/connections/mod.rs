//! Connections and requests in flight, both of which are limited.
//!
//! A client that holds a connection or a place in flight without making progress loses it after a
//! timeout (`--keep-alive`, `--stall`). If another client is waiting, it loses it at once: idle
//! connections are closed first, then the response that its client has not read for longest.

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
