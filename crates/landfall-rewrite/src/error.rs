//! Why a file or an archive cannot be rewritten.

use landfall_model::document;
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
    #[error(
        "{first} and {second} would both be written to {place}; rewrite them into folders of their own"
    )]
    Clash {
        /// One input.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The path of both results.
        place: PathBuf,
    },
    /// An input would be replaced by a result.
    #[error(
        "{path} is to be read, and would be overwritten by the result of {from}; name another folder, or use --in-place"
    )]
    Overwrite {
        /// The input that would be lost.
        path: PathBuf,
        /// The input whose result that would be.
        from: PathBuf,
    },
    /// A folder below the folder of results is a link.
    #[error(
        "{0} is a symbolic link, and results go to no other place than was named; remove it, or name another folder"
    )]
    Link(PathBuf),
    /// A path is a named pipe.
    #[error("{0} is a pipe, no regular file; give what comes out of it by stdin: `- < {0}`")]
    Pipe(PathBuf),
    /// A file was changed after it was read.
    #[error("it was changed after it was read, and is left as it is now; run the command again")]
    Changed,
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
    /// A chart in it is unreadable.
    #[error("{path}: {source}")]
    Inside {
        /// Its path in the archive.
        path: String,
        /// Why.
        source: Box<ArchiveError>,
    },
    /// It unpacks to too much.
    #[error(
        "with the charts in it, it unpacks to more than {bytes} bytes or {members} files, which no chart does"
    )]
    Large {
        /// The limit of bytes.
        bytes: u64,
        /// The limit of members.
        members: usize,
    },
    /// A document in it is larger than is read.
    #[error("{path} has more than {most} bytes, and Helm refuses such a file in a chart")]
    File {
        /// Its path in the archive.
        path: String,
        /// The limit, in bytes.
        most: usize,
    },
}

impl From<document::ArchiveError> for ArchiveError {
    fn from(error: document::ArchiveError) -> ArchiveError {
        match error {
            document::ArchiveError::Large(bytes, members) => ArchiveError::Large { bytes, members },
            document::ArchiveError::Read(source) => ArchiveError::Unreadable(source),
            other => ArchiveError::Unreadable(std::io::Error::other(other.to_string())),
        }
    }
}
