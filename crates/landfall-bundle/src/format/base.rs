//! The bases of a delta, as its contents index names them.

use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A base, as the contents index of a delta names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum BaseName {
    /// A bundle, perhaps a delta itself.
    Bundle {
        /// Its bundle digest.
        digest: Digest,
        /// Fingerprint of its lock.
        lock: Digest,
    },
    /// A lock: everybody who has all that it names.
    Lock {
        /// Its fingerprint.
        lock: Digest,
    },
    /// What a push left at a registry.
    Receipt {
        /// Fingerprint of the lock that was pushed.
        lock: Digest,
        /// The registry, `host[:port]`.
        registry: String,
        /// A repository of the registry for each blob that is left out.
        repositories: BTreeMap<Digest, String>,
    },
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseName::Bundle { digest, lock } => write!(f, "bundle {digest} (lock {lock})"),
            BaseName::Lock { lock } => write!(f, "a bundle of lock {lock}"),
            BaseName::Receipt { lock, registry, .. } => {
                write!(f, "what {registry} has of lock {lock}")
            }
        }
    }
}
