//! Why the metadata of a package repository is refused.

/// The metadata of a package repository cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackagesError {
    /// A compressed index is damaged or truncated.
    #[error("{name} is not what its name says: {why}")]
    Damaged {
        /// Which file of the repository.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// An index unpacks to more bytes than allowed.
    #[error("{name} unpacks to more than {most} bytes")]
    TooLarge {
        /// Which file of the repository.
        name: String,
        /// The most bytes that it may unpack to.
        most: u64,
    },
    /// The text of an index or a release is malformed.
    #[error("{name}, line {line}: {why}")]
    Text {
        /// Which file of the repository.
        name: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The release is past its `Valid-Until`.
    #[error(
        "{name} was good until {until}, and that is past: the mirror is behind, or somebody replays \
         an old one"
    )]
    Expired {
        /// Which file of the repository.
        name: String,
        /// The end of its validity.
        until: String,
    },
    /// A release has only checksums that are too weak to verify its files.
    #[error("{name} has no SHA-256 or SHA-512 sums{weak}, so nothing below it can be checked")]
    Weak {
        /// Which file of the repository.
        name: String,
        /// The weaker sums that it has, with a leading space.
        weak: &'static str,
    },
    /// A required field of a release is missing or malformed.
    #[error("{name} {why}")]
    Release {
        /// Which file of the repository.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}
