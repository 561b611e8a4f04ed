//! `landfall export files` and `charts`: the plain files of a lock as a folder `<host>/<path>`, its
//! charts as a repository, for any web server.

mod charts;
mod error;
mod members;
mod paths;
mod run;
mod write;

pub use charts::export_charts;
pub use error::ExportError;
pub use run::{export_files, export_packages};
