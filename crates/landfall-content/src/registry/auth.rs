//! Authentication with one registry: answers its challenges by Basic or Bearer, with the account
//! for each scope. Denials are remembered in the [`AccountState`].

use super::challenge::{Challenge, TokenScope};
use super::credential::{AccountState, Credential, CredentialLookup, RegistrySecret, SoloTurn};
use super::keychain::Keychain;
use super::session::RedirectTokens;
use super::token_service::{Authorization, BearerToken, realm_url};
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, HttpResponse, RequestPurpose, SlotClass, Transport,
    redacted_url,
};
use landfall_model::locked;
use reqwest::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use url::Url;

/// The state of authentication with one registry.
pub(super) struct Auth {
    pub(super) host: String,
    pub(super) base: Url,
    pub(super) transport: Transport,
    keychain: Arc<Keychain>,
    /// Whether credentials may be sent: not over plain http that was found by probing.
    pub(super) trusted: bool,
    scheme: Mutex<AuthScheme>,
    states: Mutex<HashMap<Option<Credential>, Arc<AccountState>>>,
    pub(super) tokens: Mutex<HashMap<TokenScope, Arc<tokio::sync::Mutex<Option<BearerToken>>>>>,
    pub(super) foreign: RedirectTokens,
}

/// The account that a request is sent with, and its state at this registry.
pub(super) struct RequestAccount {
    /// `None` if the registry has not required an account so far, if no account can be read, or if
    /// credentials must not be sent.
    pub(super) account: Option<Credential>,
    pub(super) state: Arc<AccountState>,
}

/// The authentication scheme that the registry requires.
#[derive(Clone)]
enum AuthScheme {
    /// The registry has sent no challenge so far.
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
            states: Mutex::default(),
            tokens: Mutex::default(),
            foreign: RedirectTokens::default(),
        }
    }

    fn scheme(&self) -> AuthScheme {
        locked(&self.scheme).clone()
    }

    /// Whether the registry has sent no challenge so far.
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(self.scheme(), AuthScheme::None)
    }

    fn learn(&self, scheme: AuthScheme) {
        *locked(&self.scheme) = scheme;
    }

    fn state(&self, account: Option<&Credential>) -> Arc<AccountState> {
        let mut states = locked(&self.states);
        states.entry(account.cloned()).or_default().clone()
    }

    /// Returns the account for requests of this scope.
    async fn request_account(&self, scope: &TokenScope) -> RequestAccount {
        let account = match self.scheme() {
            // no account is presented before the registry requires one: public images need none
            AuthScheme::None => None,
            // an account that cannot be read is reported only if the registry denies the request
            AuthScheme::Basic | AuthScheme::Bearer { .. } => {
                self.account(scope).await.unwrap_or_default()
            }
        };
        RequestAccount {
            state: self.state(account.as_ref()),
            account,
        }
    }

    /// Waits until a request of this scope may be sent. Returns its account, with the turn if the
    /// request must be the only one in flight.
    pub(super) async fn enter(&self, scope: &TokenScope) -> (RequestAccount, Option<SoloTurn>) {
        loop {
            let signer = self.request_account(scope).await;
            let turn = signer.state.turn().await;
            // the registry may have required an account for the request that had the turn before
            if self.is_current(scope, &signer).await {
                return (signer, turn);
            }
        }
    }

    /// Whether requests of the scope still use this account.
    pub(super) async fn is_current(&self, scope: &TokenScope, signer: &RequestAccount) -> bool {
        self.request_account(scope).await.account == signer.account
    }

    /// Returns the `Authorization` header for a request. Returns `None` if the registry has not
    /// required one so far, or requires Basic and there is no user name and password. Fails if the
    /// account was denied before, or no token is issued.
    pub(super) async fn authorization(
        &self,
        scope: &TokenScope,
        signer: &RequestAccount,
    ) -> Result<Option<Authorization>, HttpError> {
        signer.state.check(scope)?;
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

    /// Learns the scheme from the challenge to a request. `sent` is the `Authorization` header of
    /// that request. Fails if the scheme is unknown, if the token realm is not a URL, or if there
    /// is no account for Basic. Also fails if the request presented a Basic account that was never
    /// accepted; that account is then denied for all requests. `said` are the words of the
    /// response.
    pub(super) async fn challenged(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &TokenScope,
        signer: &RequestAccount,
        sent: Option<&str>,
        said: &str,
    ) -> Result<(), HttpError> {
        let mut challenge = Challenge::read(headers);
        // some registries challenge only requests of `/v2/`, which docker and others send first
        if !headers.contains_key(WWW_AUTHENTICATE)
            && let Some(response) = self.api_response(None).await
        {
            if response.url.origin() == self.base.origin() {
                challenge = Challenge::read(&response.headers);
            }
            response.discard().await;
        }
        match challenge {
            Ok(Challenge::Basic) => {
                let Ok(Some(account)) = self.account(scope).await else {
                    return Err(self.no_account(scope).await);
                };
                if sent.is_some_and(|sent| sent.starts_with("Basic ")) {
                    // another attempt could lock an account that was never accepted; an account
                    // that was accepted before is tried once more, alone
                    if !signer.state.was_accepted() {
                        return Err(self.deny_account(&account, &signer.state, said));
                    }
                    signer.state.require_solo();
                }
                self.learn(AuthScheme::Basic);
                Ok(())
            }
            Ok(Challenge::Bearer { realm, service, .. }) => {
                let realm = realm_url(url, &realm).map_err(|error| error.about(&*self.host))?;
                if sent.is_some() {
                    // the token was refused, although it may not have expired by our clock
                    self.forget(scope, sent).await;
                }
                self.learn(AuthScheme::Bearer { realm, service });
                Ok(())
            }
            Err(offered) => {
                let words = if headers.contains_key(WWW_AUTHENTICATE) {
                    format!(
                        "it requires authentication that landfall does not support ({offered}; \
                         supported: Basic, Bearer)"
                    )
                } else {
                    "it answered 401 without the header WWW-Authenticate, so no account can be \
                     used; perhaps a proxy removes the header"
                        .to_owned()
                };
                Err(HttpError::new(ErrorKind::Denied, words)
                    .hint(said)
                    .at(url)
                    .about(&*self.host))
            }
        }
    }

    /// Returns the account to try after a request without an account was answered with 403 or 404:
    /// some registries challenge only requests of `/v2/`, and hide private content from all others.
    /// `None` if there is no account, or if it was tried in vain.
    pub(super) async fn unasked_account(&self, scope: &TokenScope) -> Option<RequestAccount> {
        let account = self.account(scope).await.ok()??;
        let state = self.state(Some(&account));
        // another request may have been challenged meanwhile
        let is_open = !self.is_anonymous() || state.unasked.get() != Some(&false);
        is_open.then_some(RequestAccount {
            account: Some(account),
            state,
        })
    }

    /// Signs in with an account that no request was challenged for, once for each account.
    pub(super) async fn sign_in_unasked(&self, scope: &TokenScope, signer: &RequestAccount) {
        if self.is_anonymous() {
            let accepted = &signer.state.unasked;
            accepted
                .get_or_init(|| self.is_accepted_by_api(scope, signer))
                .await;
        }
    }

    /// Whether the registry challenges a request of `/v2/`, and accepts the account of `signer`,
    /// which all requests present from then on.
    async fn is_accepted_by_api(&self, scope: &TokenScope, signer: &RequestAccount) -> bool {
        let Some(response) = self.api_response(None).await else {
            return false;
        };
        let (status, url) = (response.status, response.url.clone());
        let challenge = Challenge::read(&response.headers);
        response.discard().await;
        if status != StatusCode::UNAUTHORIZED || url.origin() != self.base.origin() {
            return false;
        }
        let accepted = match challenge {
            Ok(Challenge::Basic) => {
                let Some(account) = &signer.account else {
                    return false;
                };
                let Some(header) = account.secret.basic_header() else {
                    return false;
                };
                if self.is_denied_everywhere(&header).await {
                    Err(self.deny_account(account, &signer.state, ""))
                } else {
                    Ok(AuthScheme::Basic)
                }
            }
            Ok(Challenge::Bearer { realm, service, .. }) => {
                let Ok(realm) = realm_url(&url, &realm) else {
                    return false;
                };
                let token = self.token(scope, &realm, service.as_deref(), signer).await;
                token.map(|_| AuthScheme::Bearer { realm, service })
            }
            Err(_) => return false,
        };
        match accepted {
            Ok(scheme) => {
                self.learn(scheme);
                true
            }
            Err(error) => {
                let note = format!("{error}; continuing without an account");
                self.transport.note_once(&note);
                false
            }
        }
    }

    /// Returns the error for a request that was denied again. `sent` is its `Authorization` header,
    /// `said` are the words of the response.
    /// Finds out whether the registry denies the account altogether or only for this scope.
    pub(super) async fn denied_again(
        &self,
        scope: &TokenScope,
        signer: &RequestAccount,
        sent: Option<&str>,
        said: &str,
    ) -> HttpError {
        if let Some(account) = &signer.account
            && let Some(sent) = sent.filter(|sent| sent.starts_with("Basic "))
            && self.is_denied_everywhere(sent).await
        {
            return self.deny_account(account, &signer.state, said);
        }
        if let Some(error) = signer.state.deny_left_out(scope) {
            return error;
        }
        let error = self.denied(scope, StatusCode::UNAUTHORIZED).await;
        let error = error.hint(said);
        // a push may cancel many uploads: after the first denial, no more `DELETE` requests of this
        // scope are sent
        if scope.delete {
            signer.state.deny_scope(scope, error.clone());
        }
        error
    }

    /// Whether the registry denies `header` at `/v2/`, which every valid account may request.
    async fn is_denied_everywhere(&self, header: &str) -> bool {
        // a network error proves nothing about the account
        let Some(response) = self.api_response(Some(header)).await else {
            return false;
        };
        let refused = response.status == StatusCode::UNAUTHORIZED;
        response.discard().await;
        refused
    }

    /// Returns the response to a request of `/v2/` with this `Authorization` header; `None` if there
    /// is no response.
    async fn api_response(&self, header: Option<&str>) -> Option<HttpResponse> {
        let url = self.base.join("/v2/").ok()?;
        let request = HttpRequest {
            // requests that wait for this one may hold all ordinary slots of the host
            class: SlotClass::SignIn,
            ..HttpRequest::new(Method::GET, url, RequestPurpose::Registry)
        };
        let request = request.optional_header(AUTHORIZATION, header);
        self.transport.send(&request).await.ok()
    }

    /// Returns the error for a request that the registry denies.
    pub(super) async fn denied(&self, scope: &TokenScope, status: StatusCode) -> HttpError {
        // read again for the message: why a credential is unreadable helps more than "no account"
        let found = self.account(scope).await;
        let who = match &found {
            Ok(Some(account)) if self.unsafe_realm().is_none() => {
                format!("{account} may not do this")
            }
            _ => self.why_no_account(&found),
        };
        let what = match (scope.push, scope.delete) {
            (_, true) => "delete from",
            (true, false) => "write to",
            (false, false) => "read",
        };
        let words = if scope.repository.is_empty() {
            format!("may not sign in: {who}")
        } else {
            format!("may not {what} {}: {who}", scope.repository)
        };
        HttpError::new(ErrorKind::Denied, words)
            .with_status(status)
            .about(&*self.host)
    }

    /// Returns a Basic `Authorization` header for `scope`, for an API that accepts no tokens.
    pub(super) async fn basic(&self, scope: &TokenScope) -> Result<Option<String>, HttpError> {
        let Ok(Some(account)) = self.account(scope).await else {
            return Ok(None);
        };
        self.state(Some(&account)).check(scope)?;
        Ok(account.secret.basic_header())
    }

    /// Finds the account for `scope`; `None` if credentials must not be sent.
    pub(super) async fn account(&self, scope: &TokenScope) -> CredentialLookup {
        if !self.trusted {
            return Ok(None);
        }
        self.keychain.find(&self.host, &scope.repository).await
    }

    /// Returns the error for a request that needs an account when there is none for its scope.
    pub(super) async fn no_account(&self, scope: &TokenScope) -> HttpError {
        let found = self.account(scope).await;
        let words = format!(
            "it requires authentication for {}, and {}",
            scope.repository,
            self.why_no_account(&found)
        );
        let error = HttpError::new(ErrorKind::Denied, words).about(&*self.host);
        match found {
            Err(fault) => error.caused_by(fault),
            Ok(_) => error,
        }
    }

    /// Returns why a request presents no account, for messages. `found` is the account for it.
    fn why_no_account(&self, found: &CredentialLookup) -> String {
        let advice = match (found, self.unsafe_realm()) {
            (Err(fault), _) => return format!("there is no account for it: {fault}"),
            (Ok(Some(account)), Some(realm)) => {
                return format!(
                    "{account} is not sent to its token service {}, which must use https with a \
                     checked certificate, or be at the address of the registry",
                    redacted_url(&realm)
                );
            }
            _ if self.trusted => {
                "sign in with docker or podman login, or name credentials in the site"
            }
            _ => {
                "name credentials in the site or sign in with docker or podman login, and use \
                 --plain-http, or plainHTTP: true in the site: over http that was found by probing, \
                 no credentials are sent"
            }
        };
        format!("there is no account for it; {advice}")
    }

    /// Returns the realm that the registry named, if secrets must not be sent to it.
    fn unsafe_realm(&self) -> Option<Url> {
        match self.scheme() {
            AuthScheme::Bearer { realm, .. } if !self.may_have_secret(&realm) => Some(realm),
            _ => None,
        }
    }

    /// Denies an account for all workers and returns the error. More attempts could get it locked.
    /// `said` are the words of the response.
    pub(super) fn deny_account(
        &self,
        account: &Credential,
        state: &AccountState,
        said: &str,
    ) -> HttpError {
        let hint = match &account.secret {
            // Harbor names its robot accounts `robot$NAME`, and a shell expands `$NAME` to nothing
            RegistrySecret::Basic(user, _) if user == "robot" => {
                "; the user name is 'robot' alone: was a $ in it expanded by a shell?"
            }
            RegistrySecret::Basic(..) => "; correct its password, or use another account",
            RegistrySecret::Identity(_) => "; sign in again, or use another account",
        };
        let words = format!("{account} was refused{said}{hint}");
        let error = HttpError::new(ErrorKind::Denied, words).about(&*self.host);
        state.deny(error.clone());
        error
    }
}
