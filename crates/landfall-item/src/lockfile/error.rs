//! Why a lock cannot be used.

use landfall_model::document::Diagnostic;
use std::path::PathBuf;

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read.
    #[error("cannot read the lock {path}: {source}")]
    Open {
        /// The path of the lock.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not a valid lock.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
    /// The last line is missing, so the file was probably truncated when it was copied.
    #[error("{path} is truncated: a lock ends with the line `...`")]
    Truncated {
        /// The path of the lock.
        path: String,
    },
    /// The lock contains a value that landfall would never write.
    #[error("{path}: {why}")]
    Content {
        /// The path of the lock.
        path: String,
        /// What is wrong with the content.
        why: String,
    },
    /// The version of the lock is not 1, as in a lock of a newer landfall.
    #[error("{path}: lock version {found} is not known to this landfall, which reads version 1")]
    Version {
        /// The path of the lock.
        path: String,
        /// The version that the lock has.
        found: u32,
    },
}

impl LockError {
    /// What to do about the error. A [`LockError::Document`] contains its own help.
    pub fn help(&self) -> Option<String> {
        match self {
            LockError::Open { path, .. } => Some(format!(
                "write one with `landfall lock -f MANIFEST --lock {}`",
                path.display()
            )),
            LockError::Document(_) => None,
            LockError::Truncated { .. } => {
                Some("copy it again, or write it again with `landfall lock`".into())
            }
            LockError::Version { found: 2.., .. } => Some("use a newer landfall".into()),
            LockError::Content { .. } | LockError::Version { .. } => {
                Some("write it again with `landfall lock`".into())
            }
        }
    }
}
