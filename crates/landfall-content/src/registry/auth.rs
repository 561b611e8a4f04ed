//! The sign-in to one registry: answers its challenges by Basic or Bearer, with the account for
//! each scope. What is refused to an account stands in its [`Standing`].

use super::account_state::{AccountState, SoloTurn};
use super::challenge::Challenge;
use super::credential::{Credential, CredentialLookup, RegistrySecret};
use super::keychain::Keychain;
use super::redirect_tokens::RedirectTokens;
use super::scope::TokenScope;
use super::token::{Authorization, BearerToken, realm_url};
use landfall_http::{ErrorKind, HttpError, HttpRequest, RequestPurpose, Transport};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Method, StatusCode};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// The state of authentication with one registry.
pub(super) struct Auth {
    pub(super) host: String,
    pub(super) base: Url,
    pub(super) transport: Transport,
    keychain: Arc<Keychain>,
    /// Credentials may be sent: the scheme was not found by probing.
    pub(super) trusted: bool,
    scheme: Mutex<AuthScheme>,
    standings: Mutex<HashMap<Option<Credential>, Arc<AccountState>>>,
    pub(super) tokens: Mutex<HashMap<TokenScope, Arc<tokio::sync::Mutex<Option<BearerToken>>>>>,
    pub(super) foreign: RedirectTokens,
}

/// Who signs a request, and how they stand here.
pub(super) struct RequestAccount {
    /// The account; `None` while the registry has asked for none, and where there is none.
    pub(super) account: Option<Credential>,
    pub(super) standing: Arc<AccountState>,
}

/// How the registry wants requests signed.
#[derive(Clone)]
enum AuthScheme {
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
            scheme: Mutex::new(AuthScheme::None),
            standings: Mutex::default(),
            tokens: Mutex::default(),
            foreign: RedirectTokens::default(),
        }
    }

    fn scheme(&self) -> AuthScheme {
        self.scheme
            .lock()
            .map_or(AuthScheme::None, |scheme| scheme.clone())
    }

    /// Whether the registry has sent no challenge so far.
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self.scheme(), AuthScheme::None)
    }

    fn learn(&self, scheme: AuthScheme) {
        if let Ok(mut slot) = self.scheme.lock() {
            *slot = scheme;
        }
    }

    fn standing(&self, account: Option<&Credential>) -> Arc<AccountState> {
        let mut standings = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        standings.entry(account.cloned()).or_default().clone()
    }

    /// Who signs requests of this scope.
    async fn signer(&self, scope: &TokenScope) -> RequestAccount {
        let account = match self.scheme() {
            AuthScheme::None => None,
            // why there is none is told where one is needed
            AuthScheme::Basic | AuthScheme::Bearer { .. } => {
                self.account(scope).await.unwrap_or_default()
            }
        };
        RequestAccount {
            standing: self.standing(account.as_ref()),
            account,
        }
    }

    /// Who signs the next request of this scope, once it may be sent: with others, or alone in its
    /// turn.
    pub(super) async fn enter(&self, scope: &TokenScope) -> (RequestAccount, Option<SoloTurn>) {
        loop {
            let signer = self.signer(scope).await;
            let turn = signer.standing.turn().await;
            // whoever had the turn before may have been asked for an account
            if self.is_signed_by(scope, &signer).await {
                return (signer, turn);
            }
        }
    }

    /// Whether it is this signer who signs requests of the scope now.
    pub(super) async fn is_signed_by(&self, scope: &TokenScope, signer: &RequestAccount) -> bool {
        self.signer(scope).await.account == signer.account
    }

    /// The `Authorization` header for a request; `None` where the registry has asked for none so
    /// far.
    ///
    /// # Errors
    /// Where the account is refused, or no token is given.
    pub(super) async fn authorization(
        &self,
        scope: &TokenScope,
        signer: &RequestAccount,
    ) -> Result<Option<Authorization>, HttpError> {
        signer.standing.check(scope)?;
        match self.scheme() {
            AuthScheme::None => Ok(None),
            AuthScheme::Basic => {
                let header = signer
                    .account
                    .as_ref()
                    .and_then(|account| account.secret.basic_header());
                Ok(header.map(Authorization::new))
            }
            AuthScheme::Bearer { realm, service } => Ok(Some(
                self.token(scope, &realm, service.as_deref(), signer)
                    .await?,
            )),
        }
    }

    /// Learns from a challenge. `sent` is the header that the registry refused.
    ///
    /// # Errors
    /// When landfall cannot answer the challenge, or the registry refused an account that it never
    /// took: that is final for all requests with it.
    pub(super) async fn challenged(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &TokenScope,
        signer: &RequestAccount,
        sent: Option<&str>,
    ) -> Result<(), HttpError> {
        match Challenge::read(headers) {
            Ok(Challenge::Basic) => {
                let Ok(Some(account)) = self.account(scope).await else {
                    return Err(self.no_account(scope).await);
                };
                if sent.is_some_and(|sent| sent.starts_with("Basic ")) {
                    if !signer.standing.was_taken() {
                        return Err(self.refuse(&account, &signer.standing));
                    }
                    signer.standing.doubt();
                }
                self.learn(AuthScheme::Basic);
                Ok(())
            }
            Ok(Challenge::Bearer { realm, service, .. }) => {
                let realm = realm_url(url, &realm).map_err(|error| error.about(&*self.host))?;
                if sent.is_some() {
                    self.forget(scope, sent).await;
                }
                self.learn(AuthScheme::Bearer { realm, service });
                Ok(())
            }
            Err(offered) => {
                let words = format!(
                    "it wants a sign-in that landfall cannot do ({offered}; known: Basic, Bearer)"
                );
                Err(HttpError::new(ErrorKind::Denied, words)
                    .at(url)
                    .about(&*self.host))
            }
        }
    }

    /// The error for a request that was refused again although it was signed with `sent`: it is the
    /// account's where the registry takes it for nothing any more, else that of the scope.
    pub(super) async fn refused_again(
        &self,
        scope: &TokenScope,
        signer: &RequestAccount,
        sent: Option<&str>,
    ) -> HttpError {
        if let Some(account) = &signer.account
            && let Some(sent) = sent.filter(|sent| sent.starts_with("Basic "))
            && self.refuses_everywhere(sent).await
        {
            return self.refuse(account, &signer.standing);
        }
        self.denied(scope, StatusCode::UNAUTHORIZED).await
    }

    /// Whether the registry refuses `header` at its base, where every account that is good may ask.
    async fn refuses_everywhere(&self, header: &str) -> bool {
        let Ok(url) = self.base.join("/v2/") else {
            return false;
        };
        let request = HttpRequest::new(Method::GET, url, RequestPurpose::Registry)
            .header(AUTHORIZATION, header);
        let Ok(response) = self.transport.send(&request).await else {
            return false;
        };
        let refused = response.status == StatusCode::UNAUTHORIZED;
        response.discard().await;
        refused
    }

    /// The error for a request that the registry refuses although it was signed, or that could not
    /// be signed.
    pub(super) async fn denied(&self, scope: &TokenScope, status: StatusCode) -> HttpError {
        let who = match self.account(scope).await {
            Ok(Some(account)) => format!("{account} may not do this"),
            Ok(None) => "there is no account for it; sign in with docker or podman login, or name credentials in the site".into(),
            Err(fault) => format!("there is no account for it: {fault}"),
        };
        let what = match (scope.push, scope.delete) {
            (_, true) => "delete from",
            (true, false) => "write to",
            (false, false) => "read",
        };
        let words = format!("may not {what} {}: {who}", scope.repository);
        HttpError::new(ErrorKind::Denied, words)
            .with_status(status)
            .about(&*self.host)
    }

    /// A Basic `Authorization` with the account for `scope`, for an API that takes no tokens.
    pub(super) async fn basic(&self, scope: &TokenScope) -> Result<Option<String>, HttpError> {
        let Ok(Some(account)) = self.account(scope).await else {
            return Ok(None);
        };
        self.standing(Some(&account)).check(scope)?;
        Ok(account.secret.basic_header())
    }

    /// The account for `scope`, where credentials may be sent.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub(super) async fn account(&self, scope: &TokenScope) -> CredentialLookup {
        if !self.trusted {
            return Ok(None);
        }
        self.keychain.find(&self.host, &scope.repository).await
    }

    /// The error for a sign-in without an account.
    pub(super) async fn no_account(&self, scope: &TokenScope) -> HttpError {
        let words = format!(
            "it wants a sign-in for {}, and there is no account for it",
            scope.repository
        );
        let advice = match (self.account(scope).await, self.trusted) {
            (Err(fault), _) => {
                return HttpError::new(ErrorKind::Denied, format!("{words}: {fault}"))
                    .about(&*self.host)
                    .caused_by(fault);
            }
            (_, true) => "; sign in with docker or podman login, or name credentials in the site",
            (_, false) => {
                "; name credentials in the site or sign in with docker or podman login, and say --plain-http, or \
                 plainHTTP: true in the site: over http that was found by probing none is ever sent"
            }
        };
        HttpError::new(ErrorKind::Denied, words + advice).about(&*self.host)
    }

    /// The error for a refused account. It is final for all workers, so that no account gets
    /// locked.
    pub(super) fn refuse(&self, account: &Credential, standing: &AccountState) -> HttpError {
        let hint = match &account.secret {
            RegistrySecret::Basic(user, _) if user == "robot" => {
                "; the user name is 'robot' alone: was a $ in it expanded by a shell?"
            }
            _ => "",
        };
        let error = HttpError::new(ErrorKind::Denied, format!("{account} was refused{hint}"))
            .about(&*self.host);
        standing.refuse(error.clone());
        error
    }
}
