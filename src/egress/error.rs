//! The errors of `landfall egress`.

use super::pattern::InvalidHost;
use std::path::PathBuf;

/// An error from listing the hosts that a lock needs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    /// The record of contacted hosts cannot be read.
    #[error("cannot read {path}: {why}; remove it, and the next lock and pull write a new one")]
    Record {
        /// The file of the record.
        path: PathBuf,
        /// The error of reading or parsing it.
        why: String,
    },
    /// The lock has a host that cannot be written into a rule.
    #[error("the lock has a host that a firewall rule cannot contain: {0}")]
    Host(#[from] InvalidHost),
    /// The lock has a name that cannot be part of a URL.
    #[error(transparent)]
    Name(#[from] landfall_http::HttpError),
}
