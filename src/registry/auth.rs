//! The sign-in to one registry: answers its challenges by Basic or Bearer, and ends it for all workers where the registry
//! refuses the account.

use super::challenge::Challenge;
use super::credential::{Credential, Secret};
use super::keychain::Keychain;
use super::scope::Scope;
use super::token::{Authorization, Token, realm_url};
use crate::http::{Error, ErrorKind, Transport};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use url::Url;

/// The state of authentication with one registry.
pub(super) struct Auth {
    pub(super) host: String,
    pub(super) base: Url,
    pub(super) transport: Transport,
    keychain: Arc<Keychain>,
    /// Credentials may be sent: the scheme was not found by probing.
    trusted: bool,
    scheme: Mutex<Scheme>,
    /// The registry has taken a request: this way of signing in works.
    proven: AtomicBool,
    /// Held until then, so that one worker alone gets the challenge and presents an account first.
    first: tokio::sync::Mutex<()>,
    pub(super) tokens: Mutex<HashMap<Scope, Arc<tokio::sync::Mutex<Option<Token>>>>>,
    refused: Mutex<Option<Error>>,
}

/// How the registry wants requests signed.
#[derive(Clone)]
enum Scheme {
    /// No challenge so far.
    None,
    Basic,
    Bearer {
        realm: Url,
        service: Option<String>,
    },
}

impl Auth {
    pub(super) fn new(
        host: String,
        base: Url,
        transport: Transport,
        keychain: Arc<Keychain>,
        trusted: bool,
    ) -> Auth {
        Auth {
            host,
            base,
            transport,
            keychain,
            trusted,
            scheme: Mutex::new(Scheme::None),
            proven: AtomicBool::new(false),
            first: tokio::sync::Mutex::default(),
            tokens: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    fn scheme(&self) -> Scheme {
        self.scheme.lock().map_or(Scheme::None, |scheme| scheme.clone())
    }

    /// Whether the registry has sent no challenge so far.
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self.scheme(), Scheme::None)
    }

    fn learn(&self, scheme: Scheme) {
        if let Ok(mut slot) = self.scheme.lock() {
            *slot = scheme;
        }
    }

    /// The refusal of an account, which is final.
    pub(super) fn final_refusal(&self) -> Result<(), Error> {
        self.refused.lock().ok().and_then(|refused| refused.clone()).map_or(Ok(()), Err)
    }

    /// Waits until a sign-in is known to work, or gives the caller the turn to try it.
    pub(super) async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.proven.load(Ordering::Acquire) {
            return None;
        }
        let turn = self.first.lock().await;
        (!self.proven.load(Ordering::Acquire)).then_some(turn)
    }

    /// The registry took a request.
    pub(super) fn accepted(&self) {
        self.proven.store(true, Ordering::Release);
    }

    /// The `Authorization` header for a request; `None` where the registry has asked for none so far.
    pub(super) async fn authorization(&self, scope: &Scope) -> Result<Option<Authorization>, Error> {
        self.final_refusal()?;
        match self.scheme() {
            Scheme::None => Ok(None),
            Scheme::Basic => {
                let account = self.credential(scope).await?;
                Ok(account.and_then(|account| account.secret.basic_header()).map(Authorization::new))
            }
            Scheme::Bearer { realm, service } => {
                Ok(Some(self.token(scope, &realm, service.as_deref()).await?))
            }
        }
    }

    /// Learns from a challenge. `sent` is the header that the registry refused.
    ///
    /// # Errors
    /// When landfall cannot answer the challenge, or the registry refused the account: that is final for all.
    pub(super) async fn challenged(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &Scope,
        sent: Option<&str>,
    ) -> Result<(), Error> {
        match Challenge::read(headers) {
            Ok(Challenge::Basic) => {
                let account = self.credential(scope).await?;
                let refused = sent.is_some_and(|sent| sent.starts_with("Basic "));
                match account {
                    Some(account) if refused => Err(self.refuse(&account)),
                    Some(_) => {
                        self.learn(Scheme::Basic);
                        Ok(())
                    }
                    None => Err(self.no_account(scope)),
                }
            }
            Ok(Challenge::Bearer { realm, service, .. }) => {
                let realm = realm_url(url, &realm).map_err(|error| error.about(&*self.host))?;
                if sent.is_some() {
                    self.forget(scope, sent).await;
                }
                self.learn(Scheme::Bearer { realm, service });
                Ok(())
            }
            Err(offered) => {
                let words =
                    format!("it wants a sign-in that landfall cannot do ({offered}; known: Basic, Bearer)");
                Err(Error::new(ErrorKind::Denied, words).at(url).about(&*self.host))
            }
        }
    }

    /// The error for a request that the registry refuses although it was signed, or that could not be signed.
    pub(super) async fn denied(&self, scope: &Scope, status: StatusCode) -> Error {
        let who = match self.credential(scope).await {
            Ok(Some(account)) => format!("{account} may not do this"),
            Err(error) => return error.about(&*self.host),
            Ok(None) => "there is no account for it; sign in with docker or podman login, or name credentials in the site".into(),
        };
        let what = if scope.push { "write to" } else { "read" };
        let words = format!("may not {what} {} ({}): {who}", scope.repository, status.as_u16());
        Error::new(ErrorKind::Denied, words).answered(status).about(&*self.host)
    }

    /// A Basic `Authorization` with the account for `scope`, for an API that takes no tokens.
    pub(super) async fn basic(&self, scope: &Scope) -> Result<Option<String>, Error> {
        self.final_refusal()?;
        Ok(self.credential(scope).await?.and_then(|account| account.secret.basic_header()))
    }

    /// The account for `scope`, where credentials may be sent.
    pub(super) async fn credential(&self, scope: &Scope) -> Result<Option<Credential>, Error> {
        if !self.trusted {
            return Ok(None);
        }
        Ok(self.keychain.find(&self.host, &scope.repository).await?)
    }

    /// The error for a sign-in without an account.
    pub(super) fn no_account(&self, scope: &Scope) -> Error {
        let words = format!("it wants a sign-in for {}, and there is no account for it", scope.repository);
        let advice = match self.trusted {
            true => "; sign in with docker or podman login, or name credentials in the site",
            false => {
                "; name credentials in the site or sign in with docker or podman login, and say --plain-http, or \
                 plainHTTP: true in the site: over http that was found by probing none is ever sent"
            }
        };
        Error::new(ErrorKind::Denied, words + advice).about(&*self.host)
    }

    /// The error for a refused account. It is final for all workers, so that no account gets locked.
    pub(super) fn refuse(&self, account: &Credential) -> Error {
        let hint = match &account.secret {
            Secret::Basic(user, _) if user == "robot" => {
                "; the user name is 'robot' alone: was a $ in it expanded by a shell?"
            }
            _ => "",
        };
        let error = Error::new(ErrorKind::Denied, format!("{account} was refused{hint}")).about(&*self.host);
        if let Ok(mut refused) = self.refused.lock() {
            *refused = Some(error.clone());
        }
        error
    }
}
