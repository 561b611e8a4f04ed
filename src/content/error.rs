//! Why content cannot be written.

use crate::model::Digest;
use std::path::{Path, PathBuf};

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder of the store: what was tried, and the system's answer.
    #[error("store: cannot {action} {path}: {source}{}", hint(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The file of a bundle that is being made: the system's answer.
    #[error("cannot write {path}: {source}{}", full(source))]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The store is to be swept while others use it, or used while it is swept.
    #[error("another process uses the store {dir}; wait until it is done")]
    Busy {
        /// The store.
        dir: PathBuf,
    },
    /// Content that came in has another digest than it should have.
    #[error("the bytes that came are not {wanted}: they are {found}")]
    Digest {
        /// What was wanted.
        wanted: Digest,
        /// What came.
        found: Digest,
    },
    /// Content that came in has another size than it should have.
    #[error("{wanted} should have {size} bytes, {found} came")]
    Size {
        /// What was wanted.
        wanted: Digest,
        /// Its size.
        size: u64,
        /// What came.
        found: u64,
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

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; choose another store with --store DIR",
        _ => full(error),
    }
}

fn full(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some space and run it again, it goes on from here",
        _ => "",
    }
}

/// A step that failed: what was tried, with which file.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    move |source| StoreError::Io { action, path: path.into(), source }
}
