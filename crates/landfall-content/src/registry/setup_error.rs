//! Errors in the settings of mirrors, proxies and credentials.

use super::credential::CredentialError;
use landfall_http::{PrivateTargetError, ProxySettingError};

/// Which connection setting is invalid, and why.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A mirror in the site.
    #[error("upstreams.{host}.mirror of the site: {fault}")]
    Mirror {
        /// The host with this mirror.
        host: String,
        /// What is wrong with the mirror.
        fault: MirrorFault,
    },
    /// The URL or a rule of the proxy.
    #[error(transparent)]
    Proxy(#[from] ProxySettingError),
    /// An entry of `privateTargets` in the site.
    #[error(transparent)]
    PrivateTarget(#[from] PrivateTargetError),
    /// Credentials in the site or the environment.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
}

/// What is wrong with the URL of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MirrorFault {
    /// The value is not a URL.
    #[error("not a valid URL: {0}")]
    Url(#[from] url::ParseError),
    /// The URL contains a user name or password.
    #[error("a URL with a user name is refused; use `credentials` next to it")]
    UserName,
    /// The scheme is not http or https.
    #[error("write http://… or https://…")]
    Scheme,
}
