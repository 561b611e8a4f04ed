//! An account at a registry, and why none can be read. Its secret is never shown; where it was
//! found is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_http as http;
use landfall_model::TargetRegistryError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// An account, and where it was found.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credential {
    /// The secret itself.
    pub secret: RegistrySecret,
    /// Where it was found, for messages.
    pub source: String,
}

/// What landfall presents.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RegistrySecret {
    /// User name and password.
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
    /// The value of an `Authorization: Basic` header, for user name and password.
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

/// What the search for an account comes to: one, none, or why there may be one and it cannot be
/// had.
pub type CredentialLookup = Result<Option<Credential>, Arc<CredentialError>>;

/// Why credentials cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file that a variable or a key of the site names cannot be read.
    #[error("{setting}: cannot read {}: {source}", path.display())]
    ReadNamed {
        /// The variable or the key.
        setting: String,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The site's registry has no usable address.
    #[error("registry.address of the site: {0}")]
    Address(#[from] TargetRegistryError),
    /// A file with user and password has another form.
    #[error("{setting}: the first line of {} is not user:password", path.display())]
    NoPair {
        /// The key of the site.
        setting: String,
        /// The file.
        path: PathBuf,
    },
    /// An entry of the site names no source of credentials.
    #[error("{setting}: name usernameEnv and passwordEnv, or file, or authFile")]
    NoSource {
        /// The key of the site.
        setting: String,
    },
    /// A variable that an entry of the site names is not set.
    #[error("{setting}: the environment variable {variable} is not set")]
    NoVariable {
        /// The key of the site.
        setting: String,
        /// The variable.
        variable: String,
    },
    /// A token, where only user name and password are of use.
    #[error(
        "{0} has an identity token, which nodes cannot sign in with; name user name and password"
    )]
    Token(String),
    /// The system refuses what a helper needs.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// A text is no auth file.
    #[error("{name} is no auth file: {source}")]
    NoAuthFile {
        /// The file or the variable.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An entry of an auth file cannot be read.
    #[error("{name}: {key}: auth is {fault}")]
    Entry {
        /// The file or the variable.
        name: String,
        /// The entry's key.
        key: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// An auth file names a credential helper that can be none.
    #[error("{name}: '{helper}' is no name of a credential helper")]
    NoHelper {
        /// The file or the variable.
        name: String,
        /// The name that it gives.
        helper: String,
    },
    /// A credential helper cannot be run.
    #[error("cannot run {program} (named in {name}): {source}")]
    RunHelper {
        /// The program.
        program: String,
        /// The file or the variable that names it.
        name: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A credential helper failed.
    #[error("{program} failed for {key}: {words}")]
    HelperFailed {
        /// The program.
        program: String,
        /// What it was asked for.
        key: String,
        /// What it said.
        words: String,
    },
    /// A credential helper gave no answer of its kind.
    #[error("{program} gave an answer that is not understood")]
    HelperAnswer {
        /// The program.
        program: String,
    },
}

impl CredentialError {
    /// Whether a file, a variable or a key that the user names is at fault, and no helper's answer.
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
