//! Why a file or an archive cannot be rewritten.

use std::path::PathBuf;

/// Why a file cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A path cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A result cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Two inputs would be written to one path.
    #[error("{first} and {second} would both be written to {place}; rewrite them into folders of their own")]
    Clash {
        /// One input.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The path of both results.
        place: PathBuf,
    },
    /// An input would be replaced by its result.
    #[error("{path} would be overwritten by its result; name another folder, or use --in-place")]
    Overwrite {
        /// The input.
        path: PathBuf,
    },
    /// An archive is not a readable chart.
    #[error("{0}; left unchanged")]
    Archive(#[from] ArchiveError),
    /// The bytes are not UTF-8.
    #[error("not UTF-8 text; left unchanged")]
    Encoding,
}

/// Why an archive cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a gzipped tar.
    #[error("not a gzipped tar: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is not one of Helm's.
    #[error("not a chart: it has no Chart.yaml")]
    NoChart,
    /// It unpacks to too much.
    #[error("it unpacks to more than {0} bytes, which no chart does")]
    Large(u64),
}
