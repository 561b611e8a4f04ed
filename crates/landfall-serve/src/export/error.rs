//! Errors of an export.

use landfall_content::ContentError;
use std::io;
use std::path::PathBuf;

/// Why files cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A URL cannot be a path below the folder.
    #[error("cannot export {url}: {why}")]
    Path {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two URLs with different content have the same path.
    #[error(
        "cannot export {first} and {second}: they have different content but the same path, {path}; \
         omit one of them"
    )]
    Collision {
        /// The path below the folder.
        path: String,
        /// The first URL.
        first: String,
        /// The second URL.
        second: String,
    },
    /// A member of an archive cannot be extracted.
    #[error("cannot unpack {url}: {why}")]
    Archive {
        /// The URL of the archive.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The index of a chart repository cannot be written.
    #[error("cannot write {path}: {why}")]
    Index {
        /// The index file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The content cannot be read.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder on the path is a symbolic link, which could lead out of the export folder.
    #[error("cannot write {path}: {link} is a symbolic link; remove it")]
    Link {
        /// The file.
        path: PathBuf,
        /// The symbolic link.
        link: PathBuf,
    },
}
