//! The errors of a client.

use crate::pull::PullError;
use landfall_bundle as bundle;
use landfall_content::archives::SourceArchiveError;
use landfall_content::registry::SetupError;
use landfall_content::{ReplaceError, WriteError};
use landfall_http as http;
use landfall_http::TlsError;
use landfall_item::manifest;
use landfall_signature::SiteRuleError;
use std::path::PathBuf;

/// An error from setting up a [`Client`](super::Client) or from one of its operations.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A mirror, a proxy, an entry of `privateTargets` or credentials cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A certificate or key that the site names cannot be used.
    #[error("{}{source}", key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
    Trust {
        /// The site file and the key in it that names the certificate.
        key: Option<String>,
        /// The reason why the certificate cannot be used.
        source: TlsError,
    },
    /// A rule of the site for the signatures of images cannot be used.
    #[error(transparent)]
    Signatures(#[from] SiteRuleError),
    /// An archive of another tool cannot be read.
    #[error(transparent)]
    Archive(#[from] SourceArchiveError),
    /// A manifest cannot be read, or is invalid.
    #[error(transparent)]
    Manifest(#[from] manifest::LoadManifestError),
    /// A manifest, a list, the lock or `landfall.lock.seen` cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    WriteDocument {
        /// The file that could not be written.
        path: PathBuf,
        /// The error of the operating system, or the fact that the file was edited meanwhile.
        source: ReplaceError,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] WriteError),
    /// The store or the bundle to which a pull writes cannot be used.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] bundle::BundleError),
    /// An object store cannot be used.
    #[error(transparent)]
    ObjectStore(#[from] http::HttpError),
    /// A bundle has a number, but the request, the lock and the manifests name no series for it.
    #[error("the bundle has a number, but its series has no name")]
    UnnamedSeries,
    /// The thread that writes the bundle panicked or was cancelled.
    #[error("packing stopped: {0}")]
    Stopped(#[from] tokio::task::JoinError),
}

impl ClientError {
    /// The fix, if it does not follow from the message.
    pub fn help(&self) -> Option<String> {
        match self {
            ClientError::UnnamedSeries => Some(
                "add --series NAME, or give every manifest the same metadata.name and lock again"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
