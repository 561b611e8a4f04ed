//! Why a repository of RPM packages cannot be used.

use std::io;

/// Why an index, or what stands in one, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum YumError {
    /// It is damaged, cut short, or too large.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is something else, or lacks something.
    #[error("it is no {what}: {why}")]
    Malformed {
        /// What it is said to be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A name leads out of the repository.
    #[error("it names '{0}', which is no path inside the repository")]
    Path(String),
    /// Nothing but a checksum that can be forged.
    #[error("it gives {name} a checksum of kind {kind}; only sha256 and sha512 are believed")]
    Weak {
        /// The file that has the unsupported checksum.
        name: String,
        /// The name of the checksum's algorithm, as `repomd.xml` has it.
        kind: String,
    },
    /// An index unpacks to more than is allowed.
    #[error("{name} unpacks to {size} bytes, more than {limit}")]
    TooLarge {
        /// The path of the index in its repository.
        name: String,
        /// What it unpacks to, in bytes.
        size: u64,
        /// The most bytes that it may unpack to.
        limit: u64,
    },
    /// A form of compression that landfall does not read.
    #[error("{0} is compressed in a form that landfall does not read; it reads gz, xz and zst")]
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
