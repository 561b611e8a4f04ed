//! The errors of `landfall egress`.

use super::pattern::InvalidHost;
use std::path::PathBuf;

/// Why the hosts that a lock needs cannot be listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    /// The record of contacted hosts cannot be read.
    #[error("cannot read {path}: {why}; remove it, and the next lock and pull write it anew")]
    Record {
        /// The file of the record.
        path: PathBuf,
        /// The error of reading or parsing it.
        why: String,
    },
    /// A host of the lock, or an endpoint, that cannot be written into a rule.
    #[error("the lock names a host that no firewall rule can name: {0}")]
    Host(#[from] InvalidHost),
    /// A name of the lock that cannot be part of a URL.
    #[error(transparent)]
    Name(#[from] landfall_http::HttpError),
}
