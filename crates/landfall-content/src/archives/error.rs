//! Errors of opening archives of other tools.

use std::io;
use std::path::PathBuf;

/// Why an archive or layout cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceArchiveError {
    /// The archive cannot be opened.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path of the archive.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file has another format.
    #[error(
        "{path} is not an archive that landfall can read (a folder, or a tar, also with gzip or \
         zstd); unpack it into a folder and name the folder"
    )]
    Unknown {
        /// The path of the archive.
        path: PathBuf,
    },
}
