//! Why an archive cannot be used.

use std::io;
use std::path::PathBuf;

/// Why an archive or layout cannot be used as a source.
#[derive(Debug, thiserror::Error)]
pub enum SourceArchiveError {
    /// It cannot be opened.
    #[error("cannot read {path}: {source}")]
    Open {
        /// Where.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{path} is no archive that landfall reads: a folder, or a tar, also as gzip or zstd; unpack it into a folder, and name that"
    )]
    Unknown {
        /// Where.
        path: PathBuf,
    },
}
