//! Errors in the metadata of an apt repository, and in compressed indexes.

use std::fmt;

/// Why the metadata of a package repository cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackagesError {
    /// A compressed index is damaged or truncated.
    #[error("{name} cannot be decompressed: {why}")]
    Damaged {
        /// The file in the repository.
        name: String,
        /// The message of the decoder.
        why: String,
    },
    /// An index unpacks to more bytes than allowed.
    #[error("{name} unpacks to more than {limit} bytes")]
    TooLarge {
        /// The file in the repository.
        name: String,
        /// The maximum size of its unpacked content in bytes.
        limit: u64,
    },
    /// A line in the list of checksums of a release is malformed.
    #[error("{name}, line {line} of its checksums: {why}")]
    Text {
        /// The file in the repository.
        name: String,
        /// The number of the line in the list of checksums.
        line: usize,
        /// What is malformed, with the text of the line or word.
        why: String,
    },
    /// The release is past its `Valid-Until`.
    #[error(
        "{name} expired at {until} (`Valid-Until`): the mirror is outdated, or an old release is \
         being replayed"
    )]
    Expired {
        /// The file in the repository.
        name: String,
        /// The time in `Valid-Until`.
        until: String,
    },
    /// A release has no checksums that are strong enough to verify its files.
    #[error("{name} has no SHA-256 or SHA-512 checksums{weak}, so its indexes cannot be verified")]
    Weak {
        /// The file in the repository.
        name: String,
        /// `, only MD5 or SHA-1` if the release has those; otherwise empty.
        weak: &'static str,
    },
    /// A release is empty, or one of its dates is malformed.
    #[error("{name} {why}")]
    Release {
        /// The file in the repository.
        name: String,
        /// The rest of the sentence that begins with the name of the file.
        why: String,
    },
    /// An index lists more than allowed.
    #[error("{name} lists more than {limit} {what}")]
    TooMany {
        /// The file in the repository.
        name: String,
        /// The maximum number.
        limit: usize,
        /// What is counted.
        what: &'static str,
    },
}

// The identity of a package according to its own file.

/// The name, version and architecture in the control file or header of a package file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// The name of the package, without version and architecture.
    pub name: String,
    /// The Debian version, or `[epoch:]version-release` of an RPM package. An epoch of 0 is
    /// omitted.
    pub version: String,
    /// The architecture that the package was built for, such as `amd64` or `noarch`.
    pub arch: String,
}

impl fmt::Display for PackageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the fields come from the file, which may contain control characters
        let text = format!("{} {} {}", self.name, self.version, self.arch);
        write!(f, "{}", text.escape_debug())
    }
}
