//! Errors of the folder for pushes.

use landfall_model::Digest;
use std::io;

/// Why content cannot be stored in the folder for pushes, or cannot be removed from it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WritableStoreError {
    #[error("the content has the digest {found}, not {expected}")]
    WrongDigest {
        found: Digest,
        /// The digest that the client named.
        expected: Digest,
    },
    #[error(
        "the folder for pushes is full: it contains {used} of {max} bytes (--max-bytes); delete \
         content that is no longer needed"
    )]
    Full { used: u64, max: u64 },
    #[error(
        "{digest} is in use by the manifest {manifest} of {repository}; delete the manifest first"
    )]
    InUse {
        digest: Digest,
        manifest: Digest,
        repository: String,
    },
    #[error("cannot use the folder for pushes: {0}")]
    Disk(#[from] io::Error),
}
