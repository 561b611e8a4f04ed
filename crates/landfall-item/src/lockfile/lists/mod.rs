//! Writes the items of a lock as lists of other tools. Each format is a file here and a row of
//! `table`.

mod hauler;
mod images_txt;
mod imgpkg_lock;
mod regsync;
mod skopeo_sync;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod zarf;

#[cfg(test)]
use self::table::ExportedList;

pub use self::table::{EXPORT_FORMATS, ExportInput};
