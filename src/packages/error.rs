//! Why the metadata of a package repository is refused.

/// Why the metadata of a package repository is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PackagesError {
    /// A compressed index is damaged.
    #[error("{name} is not what its name says: {why}")]
    Damaged { name: String, why: String },
    /// An index is larger than it may be.
    #[error("{name} unpacks to more than {most} bytes")]
    TooLarge { name: String, most: u64 },
    /// The text of an index or a release cannot be read.
    #[error("{name}, line {line}: {why}")]
    Text { name: String, line: usize, why: String },
    /// The release is good no more.
    #[error(
        "{name} was good until {until}, and that is past: the mirror is behind, or somebody replays an old one"
    )]
    Expired { name: String, until: String },
    /// A release says nothing that can be relied on of its files.
    #[error("{name} has no SHA-256 or SHA-512 sums{weak}, so nothing below it can be checked")]
    Weak { name: String, weak: &'static str },
    /// A release lacks something.
    #[error("{name} {why}")]
    Release { name: String, why: String },
}
