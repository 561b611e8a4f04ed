//! Errors from rewriting files and archives.

use landfall_model::document::UnpackError;
use std::path::PathBuf;

/// An error from rewriting a file. A message without a path is about the file that is rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// A path cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A result cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file of the result.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Two inputs would be written to one path.
    #[error(
        "{first} and {second} would both be written to {output}; \
         rewrite each into a folder of its own"
    )]
    Clash {
        /// The input that was listed first.
        first: PathBuf,
        /// The input that was listed later.
        second: PathBuf,
        /// The path of both results, or that of the first in which the second would be.
        output: PathBuf,
    },
    /// A result would overwrite an input.
    #[error(
        "the result of {from} would overwrite the input {path}; \
         name another folder, or use --in-place"
    )]
    Overwrite {
        /// The input that would be lost.
        path: PathBuf,
        /// The input whose result would overwrite it.
        from: PathBuf,
    },
    /// A folder below the output folder is a symbolic link.
    #[error("refusing to write through the symbolic link {0}; remove it, or name another folder")]
    Link(PathBuf),
    /// A path is a named pipe.
    #[error("{0} is a pipe, not a regular file; pass its content by stdin: `- < {0}`")]
    Pipe(PathBuf),
    /// A file changed after it was read.
    #[error("it changed after it was read, so landfall did not replace it; run the command again")]
    Changed,
    /// The archive of a chart cannot be rewritten.
    #[error("{0}; left unchanged")]
    Archive(#[from] ChartArchiveError),
    /// The bytes are not UTF-8, or contain a null byte.
    #[error("not UTF-8 text; left unchanged")]
    Encoding,
}

/// An error from rewriting the archive of a chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartArchiveError {
    /// The archive cannot be read or is too large.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// The new archive cannot be compressed.
    #[error("cannot compress the archive: {0}")]
    Compress(#[source] std::io::Error),
    /// The archive is not a chart.
    #[error("not a chart: it has no Chart.yaml")]
    NoChart,
    /// A chart within the archive cannot be rewritten.
    #[error("{path}: {source}")]
    Inside {
        /// The path of the inner chart in the archive.
        path: String,
        /// The error of the inner chart.
        source: Box<ChartArchiveError>,
    },
    /// A file in the archive is larger than Helm allows.
    #[error("{path} has more than {limit} bytes, which Helm refuses in a chart")]
    File {
        /// The path of the file in the archive.
        path: String,
        /// The limit of Helm, in bytes.
        limit: usize,
    },
}

// reading an entry of an archive fails with an I/O error
impl From<std::io::Error> for ChartArchiveError {
    fn from(source: std::io::Error) -> ChartArchiveError {
        ChartArchiveError::Unpack(UnpackError::Read(source))
    }
}
