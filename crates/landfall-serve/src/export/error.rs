//! Errors of exporting files, charts, git repositories and providers to a folder.

use landfall_content::ContentError;
use std::io;
use std::path::PathBuf;

/// Why files cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A URL cannot be a path below the folder.
    #[error("cannot export {url}: {why}")]
    Path {
        /// The URL that was to be exported.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two URLs, charts or git repositories with different content have the same path.
    #[error(
        "cannot export {first} and {second}: they have different content but the same path, \
         {path}; omit one of them"
    )]
    Collision {
        /// The path below the folder.
        path: String,
        /// The URL, chart or repository that has the path already.
        first: String,
        /// The URL, chart or repository that would have the same path.
        second: String,
    },
    /// A repository would be written into the folder of another one.
    #[error(
        "cannot export {inner}: its folder would be inside that of {outer}, as a part of that \
         repository; omit one of them"
    )]
    Nested {
        /// The name of the repository whose folder contains the other one.
        outer: String,
        /// The name of the repository in this folder.
        inner: String,
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
        /// The index of the chart repository.
        path: PathBuf,
        /// The error that caused the failure.
        why: String,
    },
    /// The content cannot be read.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file that cannot be written.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// A folder on the path is a symbolic link, which could lead out of the export folder.
    #[error("cannot write {path}: {link} is a symbolic link; remove it")]
    Link {
        /// The file that cannot be written.
        path: PathBuf,
        /// The symbolic link where a folder is expected.
        link: PathBuf,
    },
}
