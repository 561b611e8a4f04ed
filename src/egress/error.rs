//! Why there is no list of hosts.

use super::pattern::NoHost;
use std::path::PathBuf;

/// Why there is no list of hosts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    /// What the store observed cannot be read.
    #[error("cannot read {path}: {why}; remove it, and the next lock and pull write it anew")]
    Record {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A host of the lock, or an endpoint, that no rule can name.
    #[error("the lock names a host that no firewall rule can name: {0}")]
    Host(#[from] NoHost),
    /// A name of the lock that no request can be sent for.
    #[error(transparent)]
    Name(#[from] landfall_http::HttpError),
}
