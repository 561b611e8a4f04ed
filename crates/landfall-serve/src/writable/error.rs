//! Why something is not kept in the folder for pushes, or not removed from it.

use landfall_model::Digest;
use std::io;

/// Why something is not kept, or not removed.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum KeepError {
    /// Its digest differs from the one that the client named.
    #[error("what came in is {found}, not {expected}")]
    Digest {
        /// The digest of the bytes.
        found: Digest,
        /// The digest that the client named.
        expected: Digest,
    },
    /// There is no room for it.
    #[error(
        "the folder for pushes may have {most} bytes (--max-bytes) and has {used}; delete what is not needed any more"
    )]
    Full {
        /// Bytes that are there.
        used: u64,
        /// Bytes that may be there.
        most: u64,
    },
    /// A manifest needs it.
    #[error(
        "{repository} has the manifest {manifest}, which names {digest}; delete the manifest first"
    )]
    Needed {
        /// The blob.
        digest: Digest,
        /// A manifest that names it.
        manifest: Digest,
        /// The manifest's repository.
        repository: String,
    },
    /// The disk does not take it.
    #[error("the folder of --writable cannot be used: {0}")]
    Disk(#[from] io::Error),
}
