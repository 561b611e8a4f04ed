//! The bases of a delta, as its contents index records them.

use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The identity of a base, as the contents index of a delta records it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BaseName {
    /// A bundle, which may be a delta itself.
    Bundle {
        /// The bundle digest: SHA-256 of its contents index.
        digest: Digest,
        /// The fingerprint of the bundle's lock.
        lock: Digest,
    },
    /// A lock: the delta fits every receiver who has all content of the lock.
    Lock {
        /// The fingerprint of the lock.
        lock: Digest,
    },
    /// The receipt of a push to a registry.
    Receipt {
        /// Fingerprint of the lock that was pushed.
        lock: Digest,
        /// The registry that received the push, `host[:port]`.
        registry: String,
        /// A repository of the registry for each omitted blob.
        repositories: BTreeMap<Digest, String>,
    },
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseName::Bundle { digest, lock } => write!(f, "bundle {digest} (lock {lock})"),
            BaseName::Lock { lock } => write!(f, "a bundle of lock {lock}"),
            BaseName::Receipt { lock, registry, .. } => {
                write!(f, "content of lock {lock} at {registry}")
            }
        }
    }
}
