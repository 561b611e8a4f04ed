//! A setting of the connection that cannot be used.

use super::credential::CredentialError;
use landfall_http::{PrivateTargetError, ProxySettingError};

/// A setting that cannot be used: which one, and why.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A mirror of the site.
    #[error("upstreams.{host}.mirror of the site: {fault}")]
    Mirror {
        /// The host that has it.
        host: String,
        /// What is wrong with it.
        fault: MirrorFault,
    },
    /// A proxy.
    #[error(transparent)]
    Proxy(#[from] ProxySettingError),
    /// An entry of `privateTargets`.
    #[error(transparent)]
    PrivateTarget(#[from] PrivateTargetError),
    /// Credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
}

/// What is wrong with a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MirrorFault {
    /// It is no URL.
    #[error("no URL ({0})")]
    Url(#[from] url::ParseError),
    /// It holds a user name.
    #[error("a URL with a user name is refused; name credentials beside it")]
    UserName,
    /// It is no URL of http.
    #[error("write http://… or https://…")]
    Scheme,
}
