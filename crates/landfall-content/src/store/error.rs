//! Errors of the store on disk.

use crate::WriteError;
use std::path::{Path, PathBuf};

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file of the store cannot be read or written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Garbage collection needs exclusive access to the store, or is running right now.
    #[error("another process uses the store {dir}; wait until it has ended")]
    Busy {
        /// The folder of the store.
        dir: PathBuf,
    },
    /// `index.json` of the store is not valid JSON.
    #[error("store: {path} is not valid JSON: {why}; move it away, the blobs are kept")]
    Index {
        /// The path of the damaged `index.json`.
        path: PathBuf,
        /// The error of the parser.
        why: String,
    },
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        match error {
            StoreError::Write(error) => error,
            other => WriteError::Refused(other.to_string()),
        }
    }
}

/// Returns a function that turns an I/O error into the error of `action` on `path` in the store.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> WriteError {
    move |source| {
        let denied = source.kind() == std::io::ErrorKind::PermissionDenied;
        match WriteError::io(action, path, source) {
            WriteError::Io {
                action,
                path,
                source,
                hint,
                ..
            } => {
                let hint = if denied {
                    "; choose another store with --store DIR"
                } else {
                    hint
                };
                WriteError::Io {
                    sink: "store: ",
                    action,
                    path,
                    source,
                    hint,
                }
            }
            other => other,
        }
    }
}
