//! Reads packs of any origin, and writes landfall's own packs.

mod database;
mod resolve;
mod scan;
mod write;

pub use self::database::{GitContentCache, ObjectDatabase, ObjectIndex, PackBytes};
pub use self::resolve::PackIndexFile;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub(crate) use self::scan::EntryForm;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub(crate) use self::write::PackWriter;
pub use self::write::{PackSending, send_pack, write_pack};
