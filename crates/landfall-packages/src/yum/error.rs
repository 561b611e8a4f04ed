//! Errors in the indexes of an RPM repository.

use crate::RepositoryPathError;
use std::io;

/// The reason why an index, or something in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum YumError {
    /// The content is damaged, truncated or too large.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The content is not a document of the expected kind, or lacks a required part.
    #[error("it is not a valid {what}: {why}")]
    Malformed {
        /// The expected kind of document.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A location leads out of the host of the repository, or is malformed.
    #[error("it lists a file whose location cannot be mirrored: {0}")]
    Path(#[from] RepositoryPathError),
    /// An index is on another host than its repository.
    #[error("it lists '{0}', which is on another host than the repository")]
    OtherHost(String),
    /// A file has only a checksum that can be forged.
    #[error("it has a {kind} checksum for {name}; only sha256 and sha512 are accepted")]
    Weak {
        /// The file, or the kind of index, that has the unsupported checksum.
        name: String,
        /// The algorithm of the checksum, as `repomd.xml` or the metalink names it.
        kind: String,
    },
    /// The unpacked size of an index exceeds the limit.
    #[error("{name} unpacks to {size} bytes, more than {limit}")]
    TooLarge {
        /// The path of the index in its repository.
        name: String,
        /// The unpacked size in bytes, according to `repomd.xml`.
        size: u64,
        /// The maximum unpacked size in bytes.
        limit: u64,
    },
    /// The compression of an index is not supported.
    #[error("the compression of {0} is not supported; landfall reads gz, xz, zst, bz2 and lzma")]
    Compression(String),
}

impl YumError {
    pub(super) fn malformed(what: &'static str, why: impl ToString) -> YumError {
        YumError::Malformed {
            what,
            why: why.to_string(),
        }
    }
}
