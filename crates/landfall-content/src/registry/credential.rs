//! Credentials for a registry, and why they cannot be read. Messages show where credentials were
//! found, never the secret.

use super::challenge::TokenScope;
use super::host_rules::proxy_rules;
use super::keychain::Keychain;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landfall_http::HttpError;
use landfall_model::config::{Site, SiteCredentials};
use landfall_model::{Failure, locked};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Credentials for a registry, with their source.
#[derive(Clone, PartialEq, Eq, Hash, derive_more::Debug)]
#[debug("{self}")]
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
pub type CredentialLookup = Result<Option<Credential>, Failure>;

// Reads the credentials that a site names, for generated node configuration that contains them.

/// A user name and its password.
type SiteAccount = (String, String);

/// Variables that lead to the personal credentials of the user, which must not get to nodes.
const PERSONAL_VARIABLES: [&str; 7] = [
    "DOCKER_AUTH_CONFIG",
    "DOCKER_CONFIG",
    "HOME",
    "REGISTRY_AUTH_FILE",
    "USERPROFILE",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
];

/// Returns the user name and password that `site` names for `host/repository`.
///
/// # Errors
/// If the credentials cannot be read, or are an identity token.
pub fn site_account(
    site: &Site,
    get: impl Fn(&str) -> Option<String>,
    host: &str,
    repository: &str,
) -> Result<Option<SiteAccount>, Failure> {
    let keychain = Keychain::load(Some(site), |name| {
        if PERSONAL_VARIABLES.contains(&name) {
            None
        } else {
            get(name)
        }
    })?;
    // callers are synchronous; an auth file of the site may name a helper to run
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Failure::usage(format!(
            "cannot start a runtime for credential helpers: {error}"
        ))
    })?;
    match runtime.block_on(keychain.find(host, repository))? {
        None => Ok(None),
        Some(found) => match found.secret {
            RegistrySecret::Basic(user, password) => Ok(Some((user, password))),
            RegistrySecret::Identity(_) => Err(Failure::usage(format!(
                "{} has an identity token, which nodes cannot use; configure user name and password",
                found.source
            ))),
        },
    }
}

/// Returns the credentials for the proxies of the site: for http targets, and for https targets.
///
/// # Errors
/// If the URL of a proxy or its credentials are invalid.
pub fn site_proxy_accounts(
    site: &Site,
    get: impl Fn(&str) -> Option<String>,
) -> Result<[Option<SiteAccount>; 2], Failure> {
    let rules = proxy_rules(Some(site), get)?;
    Ok(rules.by_scheme().map(|proxy| {
        let account = proxy?.account.as_ref()?;
        Some((account.user.clone(), account.password.clone()))
    }))
}

/// Reads a file that the variable or site key `setting` names.
pub(super) fn read_named(path: &Path, setting: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        Failure::usage(format!("{setting}: cannot read {path}: {error}"))
    })?;
    // some editors write a byte order mark, which would become a part of a user name
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Reads user name, password and their source from a `credentials` entry of the site. Fails with
/// `missing` if the entry names neither a file nor two variables, if a variable is missing or
/// empty, if the file cannot be read, or if its first line is not `user:password`.
pub(super) fn site_secret(
    site: &Site,
    from: &SiteCredentials,
    setting: &str,
    missing: &str,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<(String, String, String), Failure> {
    if let Some(path) = &from.file {
        let path = site.resolve(path);
        let text = read_named(&path, setting)?;
        let line = text.lines().next().unwrap_or_default();
        let pair = line.split_once(':');
        let pair = pair.filter(|(user, password)| !user.is_empty() && !password.is_empty());
        let Some((user, password)) = pair else {
            return Err(Failure::usage(format!(
                "{setting}: the first line of {} is not user:password",
                path.display()
            )));
        };
        return Ok((user.into(), password.into(), path.display().to_string()));
    }
    let (Some(user), Some(password)) = (&from.username_env, &from.password_env) else {
        return Err(Failure::usage(format!("{setting}: {missing}")));
    };
    // the name of the variable, not its value, because the source appears in messages
    let source = format!("${user}");
    let user = required_variable(user, setting, get)?;
    let password = required_variable(password, setting, get)?;
    Ok((user, password, source))
}

fn required_variable(
    name: &str,
    setting: &str,
    get: &impl Fn(&str) -> Option<String>,
) -> Result<String, Failure> {
    get(name)
        // the end of a line of a mounted secret is not a part of it; no account has one
        .map(|value| value.trim_end_matches(['\r', '\n']).to_owned())
        .filter(|value| !value.is_empty())
        .ok_or_else(|| {
            Failure::usage(format!(
                "{setting}: the environment variable {name} is not set"
            ))
        })
}

/// The state of one account at one registry.
#[derive(Default)]
pub(super) struct AccountState {
    /// Whether requests may be sent concurrently: a request was accepted, and the account was not
    /// denied since.
    proven: AtomicBool,
    /// Held by the only request in flight until the account is proven, so that only one worker gets
    /// the challenge and presents the account: several failed logins at once could lock the
    /// account.
    solo: Arc<tokio::sync::Mutex<()>>,
    /// Whether the account was accepted when it was presented without a challenge to a request.
    pub(super) unasked: tokio::sync::OnceCell<bool>,
    state: Mutex<AccountHistory>,
}

#[derive(Default)]
struct AccountHistory {
    /// Whether the account was presented and accepted.
    accepted: bool,
    /// Why the account was refused. It is not presented again, so that it does not get locked.
    refused: Option<HttpError>,
    /// The scopes for which the account gets no token, and why.
    scopes: HashMap<TokenScope, HttpError>,
    /// The scopes that are read without the account, and why.
    without_account: HashMap<TokenScope, HttpError>,
}

/// The right to send the only request in flight; released when dropped.
pub(super) type SoloTurn = tokio::sync::OwnedMutexGuard<()>;

impl AccountState {
    /// Whether requests may be sent concurrently.
    pub(super) fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Acquire)
    }

    /// Waits until requests may be sent concurrently (returns `None`), or until it is this
    /// request's turn.
    pub(super) async fn turn(&self) -> Option<SoloTurn> {
        if self.is_proven() {
            return None;
        }
        let turn = self.solo.clone().lock_owned().await;
        // checked again: the request that held the lock may have proven the account
        (!self.is_proven()).then_some(turn)
    }

    /// Records that the registry accepted a request. `presented` is whether the request presented
    /// the account.
    pub(super) fn request_accepted(&self, presented: bool) {
        if presented {
            self.account_accepted();
        }
        self.proven.store(true, Ordering::Release);
    }

    /// Records that the account itself was accepted.
    pub(super) fn account_accepted(&self) {
        locked(&self.state).accepted = true;
    }

    /// Whether the account was ever accepted.
    pub(super) fn was_accepted(&self) -> bool {
        locked(&self.state).accepted
    }

    /// Makes requests wait for each other again: an account that was accepted before is denied now.
    pub(super) fn require_solo(&self) {
        self.proven.store(false, Ordering::Release);
    }

    /// Records why the account is denied for all later requests.
    pub(super) fn deny(&self, error: HttpError) {
        locked(&self.state).refused = Some(error);
    }

    /// Records why the account is denied for this scope only.
    pub(super) fn deny_scope(&self, scope: &TokenScope, error: HttpError) {
        locked(&self.state).scopes.insert(scope.clone(), error);
    }

    /// Records that this scope is read without the account, and why.
    pub(super) fn leave_out(&self, scope: &TokenScope, error: HttpError) {
        let mut state = locked(&self.state);
        state.without_account.insert(scope.clone(), error);
    }

    /// Whether this scope is read without the account.
    pub(super) fn is_left_out(&self, scope: &TokenScope) -> bool {
        locked(&self.state).without_account.contains_key(scope)
    }

    /// Denies a scope that cannot be read without the account either. Returns why the account is
    /// denied; `None` for a scope that was not read without it.
    pub(super) fn deny_left_out(&self, scope: &TokenScope) -> Option<HttpError> {
        let error = locked(&self.state).without_account.remove(scope)?;
        self.deny_scope(scope, error.clone());
        Some(error)
    }

    /// Returns the earlier denial of the account for this scope, if there is one.
    pub(super) fn check(&self, scope: &TokenScope) -> Result<(), HttpError> {
        let state = locked(&self.state);
        state
            .refused
            .as_ref()
            // a refusal of the account is returned first: it also explains why the scope is denied
            .or_else(|| state.scopes.get(scope))
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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

    #[test]
    fn personal_accounts_are_not_returned() {
        let dir = tempfile::tempdir().unwrap();
        let auth = r#"{"auths": {"far.test": {"username": "me", "password": "p"}}}"#;
        for path in [
            "containers/auth.json",
            ".config/containers/auth.json",
            ".docker/config.json",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, auth).unwrap();
        }
        let text = "apiVersion: landfall/v1\nkind: Site\nregistry: {address: far.test}\n";
        let site = Site::parse(Path::new("site.yaml"), text).unwrap();
        let folder = dir.path().display().to_string();
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            let get = |variable: &str| (variable == name).then(|| folder.clone());
            let personal = Keychain::load(None, get).unwrap();
            assert_eq!(personal.hosts(), vec!["far.test"; personal.hosts().len()]);
            assert!(!personal.hosts().is_empty(), "{name}");
            let found = site_account(&site, get, "far.test", "x").unwrap();
            assert_eq!(found, None, "{name}");
        }
    }
}
