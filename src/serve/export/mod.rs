//! `landfall export files`: the plain files of a lock as a folder `<host>/<path>` for any web server.

mod error;
mod members;
mod paths;
mod run;
mod write;

pub(crate) use error::ExportError;
pub(crate) use run::export_files;
