//! `landfall export`: the files of a lock as a folder `<host>/<path>`, and its charts as a
//! repository, for any web server.

mod error;
mod export_charts;
mod export_files;
mod export_paths;
mod unpack;
mod write_file;

pub use error::ExportError;
pub use export_charts::export_charts;
pub use export_files::{export_files, export_packages};
