//! Reads packs of any origin, and writes landfall's own packs.

mod bytes;
mod cache;
mod database;
mod entry_header;
mod index_file;
mod resolve;
mod scan;
mod send;
mod write;

pub use bytes::PackBytes;
pub use cache::GitContentCache;
pub use database::{ObjectDatabase, ObjectIndex};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub(crate) use entry_header::EntryForm;
pub use index_file::PackIndexFile;
pub use send::{PackSending, send_pack};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub(crate) use write::PackWriter;
pub use write::write_pack;
