//! Why nothing can be offered out of a registry.

use landfall_http::HttpError;
use landfall_item::lockfile::LockError;

/// Why nothing can be offered out of a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistrySourceError {
    /// Nobody delivered anything there that it could offer.
    #[error(
        "{place} has nothing to serve: there is no list of what was delivered; deliver files or charts to it with \
         `landfall push`"
    )]
    Nothing {
        /// Where the list would stand.
        place: String,
    },
    /// The registry does not answer, or refuses.
    #[error("cannot read {place}: {source}")]
    Registry {
        /// What was asked for.
        place: String,
        /// Its answer.
        source: HttpError,
    },
    /// Something else stands where the list should.
    #[error("{place} is no list of what was delivered: {why}")]
    List {
        /// Where it stands.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A lock of the list has other bytes than it says.
    #[error(
        "{place} names a lock that is damaged at the registry; deliver it again with --recheck"
    )]
    Damaged {
        /// Where the list stands.
        place: String,
    },
    /// A lock of the list cannot be used.
    #[error("{place} names a lock that cannot be used: {source}")]
    Lock {
        /// Where the list stands.
        place: String,
        /// What is wrong with it.
        source: Box<LockError>,
    },
}
