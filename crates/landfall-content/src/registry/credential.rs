//! Credentials for a registry, and why they cannot be read. Messages show where credentials were
//! found, never the secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_http as http;
use landfall_model::TargetRegistryError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Credentials for a registry, with their source.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credential {
    /// The secret that is sent to the registry.
    pub secret: RegistrySecret,
    /// The file, variable or helper that they come from, for messages.
    pub source: String,
}

/// The secret of a credential.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RegistrySecret {
    /// User name and password, in this order.
    Basic(String, String),
    /// An OAuth2 refresh token (`identitytoken` of auth files).
    Identity(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.secret {
            RegistrySecret::Basic(user, _) => write!(f, "account '{user}' from {}", self.source),
            RegistrySecret::Identity(_) => write!(f, "identity token from {}", self.source),
        }
    }
}

impl RegistrySecret {
    /// Returns the `Authorization` header for user name and password; `None` for an identity token.
    pub fn basic_header(&self) -> Option<String> {
        match self {
            RegistrySecret::Basic(user, password) => Some(format!(
                "Basic {}",
                STANDARD.encode(format!("{user}:{password}"))
            )),
            RegistrySecret::Identity(_) => None,
        }
    }
}

/// The result of looking for credentials. An error means that credentials may exist, but cannot be
/// read.
pub type CredentialLookup = Result<Option<Credential>, Arc<CredentialError>>;

/// Why credentials cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// An auth file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that a variable or site key names cannot be read.
    #[error("{setting}: cannot read {}: {source}", path.display())]
    ReadNamed {
        /// The variable or site key.
        setting: String,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The address of the site's registry is invalid.
    #[error("registry.address of the site: {0}")]
    Address(#[from] TargetRegistryError),
    /// The first line of a file with credentials is not `user:password`.
    #[error("{setting}: the first line of {} is not user:password", path.display())]
    NoPair {
        /// The key in the site.
        setting: String,
        /// The path of the file.
        path: PathBuf,
    },
    /// A `credentials` entry of the site names no source.
    #[error("{setting}: name usernameEnv and passwordEnv, or file, or authFile")]
    NoSource {
        /// The key in the site.
        setting: String,
    },
    /// The `credentials` of the proxy name no source that is accepted for a proxy.
    #[error(
        "{setting}: name usernameEnv and passwordEnv, or file; an auth file has accounts of \
         registries only"
    )]
    NoProxySource {
        /// The key in the site.
        setting: String,
    },
    /// A variable that a `credentials` entry names is not set.
    #[error("{setting}: the environment variable {variable} is not set")]
    NoVariable {
        /// The key in the site.
        setting: String,
        /// The name of the variable.
        variable: String,
    },
    /// The credentials are an identity token, but nodes need user name and password.
    #[error("{0} has an identity token, which nodes cannot use; configure user name and password")]
    Token(String),
    /// The runtime for credential helpers cannot start.
    #[error("cannot start a runtime for credential helpers: {0}")]
    Runtime(io::Error),
    /// A file or variable is not a valid auth file.
    #[error("{name} is not a valid auth file: {source}")]
    NoAuthFile {
        /// The file or variable that has the auth file.
        name: String,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// An entry of an auth file is invalid.
    #[error("{name}: {key}: auth is {fault}")]
    Entry {
        /// The file or variable that has the auth file.
        name: String,
        /// The key of the entry.
        key: String,
        /// What is wrong with its `auth`.
        fault: &'static str,
    },
    /// An auth file has an invalid name of a credential helper.
    #[error("{name}: '{helper}' is not a valid name of a credential helper")]
    NoHelper {
        /// The file or variable that has the auth file.
        name: String,
        /// The invalid name of the helper.
        helper: String,
    },
    /// A credential helper cannot be run.
    #[error("cannot run {program} (named in {name}): {source}")]
    RunHelper {
        /// The executable of the helper.
        program: String,
        /// The file or variable that names the helper.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A credential helper ended with an error.
    #[error("{program} failed for {key}: {words}")]
    HelperFailed {
        /// The executable of the helper.
        program: String,
        /// The key that was requested.
        key: String,
        /// The output of the helper.
        words: String,
    },
    /// The output of a credential helper is invalid.
    #[error("the output of {program} is invalid")]
    HelperAnswer {
        /// The executable of the helper.
        program: String,
    },
}

impl CredentialError {
    /// Whether a setting of the user, such as a file or a variable, is wrong. Errors of credential
    /// helpers are not errors of a setting.
    pub fn is_setting(&self) -> bool {
        !matches!(
            self,
            CredentialError::RunHelper { .. }
                | CredentialError::HelperFailed { .. }
                | CredentialError::HelperAnswer { .. }
        )
    }
}

impl From<CredentialError> for http::HttpError {
    fn from(error: CredentialError) -> http::HttpError {
        http::HttpError::new(http::ErrorKind::Local, error.to_string()).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let credential = Credential {
            secret: RegistrySecret::Basic("robot".into(), "hush".into()),
            source: "x".into(),
        };
        assert_eq!(
            format!("{credential} {credential:?}"),
            "account 'robot' from x account 'robot' from x"
        );
    }
}
