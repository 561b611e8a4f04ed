//! Writes the items of a lock as lists of other tools. Each format is a file here and a row of
//! `table`.

mod export_format;
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

pub use export_format::ExportInput;
#[cfg(test)]
use export_format::ExportedList;
pub use table::EXPORT_FORMATS;
