//! Why a client cannot be set up, or a bundle not be pulled.

use crate::pull::PullError;
use landfall_bundle as bundle;
use landfall_content::archives::ArchiveError;
use landfall_content::registry::SetupError;
use landfall_http as http;
use landfall_http::TlsError;

/// Why a [`Client`](super::Client) cannot be set up, or cannot do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A mirror, a proxy or credentials.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A certificate or key that the site names.
    #[error("{}{source}", key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
    Trust {
        /// The key that names it, with the site file.
        key: Option<String>,
        /// Why it cannot be used.
        source: TlsError,
    },
    /// An archive whose content is to be taken.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store or the bundle cannot be used.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The bundle cannot be made.
    #[error(transparent)]
    Bundle(#[from] bundle::BundleError),
    /// An object store cannot be used.
    #[error(transparent)]
    ObjectStore(#[from] http::HttpError),
    /// A thread of the bundle stopped.
    #[error("the bundle stopped: {0}")]
    Stopped(#[from] tokio::task::JoinError),
}
