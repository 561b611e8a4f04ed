//! `landfall export`: the files of a lock as a folder `<host>/<path>`, its charts as a
//! repository, its git repositories, and its providers as a mirror, for any web server.

mod bare_leftovers;
mod error;
mod export_charts;
mod export_files;
mod export_git;
mod export_paths;
mod export_providers;
mod git_bundle;
mod present_index;
mod unpack;
mod write_file;

pub use error::ExportError;
pub use export_charts::export_charts;
pub use export_files::{export_files, export_packages};
pub use export_git::{GitExportFormat, export_git};
pub use export_providers::export_providers;
