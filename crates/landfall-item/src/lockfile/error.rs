//! Why a lock cannot be used.

use landfall_model::document::Diagnostic;
use std::path::PathBuf;

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error(
        "cannot read the lock {path}: {source}; write one with `landfall lock -f MANIFEST --lock \
         {path}`"
    )]
    Open {
        /// The path of the lock.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It is not a lock.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
    /// Its end is missing.
    #[error(
        "{path} is cut off: a lock ends with a line `...`; copy it again, or write it anew with \
         `landfall lock`"
    )]
    Cut {
        /// The path of the lock.
        path: String,
    },
    /// It has content that no lock of landfall has.
    #[error("{path}: {why}; write the lock anew with `landfall lock`")]
    Content {
        /// The path of the lock.
        path: String,
        /// What is wrong with the content.
        why: String,
    },
    /// Its version is not 1.
    #[error(
        "{path}: lock version {found} is not known to this landfall (it reads version 1); {}",
        if *found > 1 { "use a newer landfall" } else { "write it anew with `landfall lock`" }
    )]
    Version {
        /// The path of the lock.
        path: String,
        /// The version that the lock has.
        found: u32,
    },
}
