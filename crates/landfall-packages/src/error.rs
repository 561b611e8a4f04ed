//! Why the metadata of a package repository is refused.

/// Why the metadata of a package repository is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackagesError {
    /// A compressed index is damaged.
    #[error("{name} is not what its name says: {why}")]
    Damaged {
        /// Which file of the repository.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// An index is larger than it may be.
    #[error("{name} unpacks to more than {most} bytes")]
    TooLarge {
        /// Which file of the repository.
        name: String,
        /// The limit in bytes.
        most: u64,
    },
    /// The text of an index or a release cannot be read.
    #[error("{name}, line {line}: {why}")]
    Text {
        /// Which file of the repository.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The release is good no more.
    #[error(
        "{name} was good until {until}, and that is past: the mirror is behind, or somebody replays an old one"
    )]
    Expired {
        /// Which file of the repository.
        name: String,
        /// The end of its validity.
        until: String,
    },
    /// A release says nothing that can be relied on of its files.
    #[error("{name} has no SHA-256 or SHA-512 sums{weak}, so nothing below it can be checked")]
    Weak {
        /// Which file of the repository.
        name: String,
        /// The weaker sums that it has, with a leading space.
        weak: &'static str,
    },
    /// A release lacks something.
    #[error("{name} {why}")]
    Release {
        /// Which file of the repository.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}
