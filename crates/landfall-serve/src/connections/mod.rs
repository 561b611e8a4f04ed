//! Connections and requests in flight, both of which are limited.
//!
//! A connection or request whose client makes no progress is closed after a timeout (`--keep-alive`,
//! `--stall`), and at once if another client is waiting: idle connections first, then the response
//! that its client has not read for longest.

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
