//! Why the store cannot be used.

use crate::WriteError;
use std::path::{Path, PathBuf};

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Content or a file of the store cannot be read or written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The store is to be swept while others use it, or used while it is swept.
    #[error("another process uses the store {dir}; wait until it is done")]
    Busy {
        /// The store.
        dir: PathBuf,
    },
    /// `index.json` of the store is no JSON.
    #[error("store: {path} is no JSON ({why}); move it away, the blobs are not touched")]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
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

/// A step that failed: what was tried, with which file.
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
