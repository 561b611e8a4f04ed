//! Reads image lists of other tools. Each format is a file here and a row of `table`.

mod format;
mod images_txt;
mod kkp;
mod lines;
mod table;
#[cfg(test)]
mod testing;

pub(super) use format::ImageListFormat;
pub use table::list_format;
pub(super) use table::{FORMATS, format_named, format_of};
