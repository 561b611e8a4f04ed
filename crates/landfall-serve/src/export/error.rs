//! Why files are not exported.

use landfall_content::ContentError;
use std::io;
use std::path::PathBuf;

/// Why files are not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A URL whose path would lead out of the folder, or is no path.
    #[error("{url} cannot be a file below the folder: {why}")]
    Path {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two URLs with different content that become one path.
    #[error(
        "{first} and {second} have other content but would be one file, {path}; leave one of them out"
    )]
    Collision {
        /// The path below the folder.
        path: String,
        /// A URL.
        first: String,
        /// Another one.
        second: String,
    },
    /// A member of an archive cannot be written.
    #[error("cannot unpack {url}: {why}")]
    Archive {
        /// The URL of the archive.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The index of a folder of charts cannot be written.
    #[error("cannot write {path}: {why}")]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The content cannot be read.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A symbolic link is in the way, which could lead out of the folder.
    #[error("cannot write {path}: {link} is a symbolic link; remove it")]
    Link {
        /// The file.
        path: PathBuf,
        /// The link.
        link: PathBuf,
    },
}
