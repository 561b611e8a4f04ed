//! `landfall export`: the files of a lock as a folder `<host>/<path>`, its charts as a
//! repository, its git repositories, and its providers as a mirror, for any web server.

mod bare_leftovers;
mod claim;
mod export_charts;
mod export_files;
mod export_git;
mod export_paths;
mod export_providers;
mod unpack;

pub use self::claim::{ExportMode, RECORD as EXPORT_RECORD};
pub use self::export_charts::export_charts;
pub use self::export_files::{export_files, export_packages};
pub use self::export_git::{GitExportFormat, export_git};
pub use self::export_paths::ExportError;
pub use self::export_providers::export_providers;
