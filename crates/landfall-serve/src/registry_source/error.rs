//! Errors from reading a registry.

use landfall_http::HttpError;
use landfall_item::lockfile::LockError;

/// Why nothing can be served from a registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistrySourceError {
    /// The registry has no list of delivered locks.
    #[error(
        "nothing to serve: the registry has no list of deliveries at {list}; deliver files or \
         charts to it with `landfall push`"
    )]
    NothingDelivered {
        /// The reference of the list.
        list: String,
    },
    /// The registry cannot be read.
    #[error("cannot read {list}: {source}")]
    Registry {
        /// The reference of the list.
        list: String,
        /// The error that caused the failure.
        source: HttpError,
    },
    /// The list of deliveries cannot be parsed.
    #[error("{list} is not a list of deliveries: {why}")]
    List {
        /// The reference of the list.
        list: String,
        /// What is wrong with it.
        why: String,
    },
    /// A lock in the list does not have its digest, or is too large.
    #[error(
        "a lock in {list} is damaged at the registry; deliver it again with \
         `landfall push --recheck`"
    )]
    DamagedLock {
        /// The reference of the list.
        list: String,
    },
    /// A lock in the list cannot be parsed.
    #[error("cannot use a lock in {list}: {source}")]
    Lock {
        /// The reference of the list.
        list: String,
        /// What is wrong with the lock.
        source: Box<LockError>,
    },
}
