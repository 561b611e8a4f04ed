//! Answers to a registry's challenges: Basic, and Bearer tokens that are fetched once for all workers.

use super::challenge::{self, Challenge};
use super::credentials::{Credential, Keychain, Secret};
use crate::http::{
    Body, Error, ErrorKind, Request, Transport, Why, came_instead, looks_like_page, shown_url,
};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// What a request wants to do in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// The repository.
    pub(super) repository: String,
    /// Whether it writes.
    pub(super) push: bool,
    /// A repository that a blob is mounted from.
    pub(super) from: Option<String>,
}

impl Scope {
    fn words(&self) -> Vec<String> {
        let actions = if self.push { "pull,push" } else { "pull" };
        let own = format!("repository:{}:{actions}", self.repository);
        let other = self.from.as_ref().map(|from| format!("repository:{from}:pull"));
        std::iter::once(own).chain(other).collect()
    }
}

/// The state of authentication with one registry.
pub(super) struct Auth {
    host: String,
    base: Url,
    transport: Transport,
    keychain: Arc<Keychain>,
    /// Credentials may be sent: the scheme was not found by probing.
    trusted: bool,
    known: Mutex<Known>,
    /// The registry has taken a request: what is known of it works.
    proven: AtomicBool,
    /// Held until then, so that one worker alone meets the challenge and presents an account first.
    first: tokio::sync::Mutex<()>,
    tokens: Mutex<HashMap<Scope, Arc<tokio::sync::Mutex<Option<Token>>>>>,
    refused: Mutex<Option<Error>>,
}

#[derive(Clone)]
enum Known {
    /// No challenge so far.
    Nothing,
    Basic,
    Bearer {
        realm: Url,
        service: Option<String>,
    },
}

struct Token {
    signed: Signed,
    until: Instant,
}

/// The `Authorization` header of a request.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) header: String,
    /// The registry has taken it once: if it is refused later, it has run out.
    pub(super) taken: Arc<AtomicBool>,
}

impl Signed {
    fn new(header: String) -> Signed {
        Signed { header, taken: Arc::default() }
    }
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
            known: Mutex::new(Known::Nothing),
            proven: AtomicBool::new(false),
            first: tokio::sync::Mutex::default(),
            tokens: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    fn known(&self) -> Known {
        self.known.lock().map_or(Known::Nothing, |known| known.clone())
    }

    /// No challenge came so far.
    pub(super) fn asks_nobody(&self) -> bool {
        matches!(self.known(), Known::Nothing)
    }

    fn learn(&self, known: Known) {
        if let Ok(mut slot) = self.known.lock() {
            *slot = known;
        }
    }

    /// Waits until the registry's way of authentication is proven, or gives the turn to prove it.
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

    /// The `Authorization` header for a request, as far as it is known that one is needed.
    pub(super) async fn header(&self, scope: &Scope) -> Result<Option<Signed>, Error> {
        if let Some(error) = self.refused.lock().ok().and_then(|refused| refused.clone()) {
            return Err(error);
        }
        match self.known() {
            Known::Nothing => Ok(None),
            Known::Basic => {
                let account = self.credential(scope).await?;
                Ok(account.and_then(|account| account.secret.basic_header()).map(Signed::new))
            }
            Known::Bearer { realm, service } => {
                Ok(Some(self.token(scope, &realm, service.as_deref()).await?))
            }
        }
    }

    /// Takes in a challenge. `sent` is the header that was refused.
    ///
    /// # Errors
    /// When the challenge cannot be answered, or credentials were presented and refused: then for all.
    pub(super) async fn challenged(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &Scope,
        sent: Option<&str>,
    ) -> Result<(), Error> {
        match challenge::read(headers) {
            Ok(Challenge::Basic) => {
                let account = self.credential(scope).await?;
                let refused = sent.is_some_and(|sent| sent.starts_with("Basic "));
                match account {
                    Some(account) if refused => Err(self.refuse(&account)),
                    Some(_) => {
                        self.learn(Known::Basic);
                        Ok(())
                    }
                    None => Err(self.no_account(scope)),
                }
            }
            Ok(Challenge::Bearer { realm, service, .. }) => {
                let realm = url.join(&realm).map_err(|_| {
                    Error::new(ErrorKind::Invalid, format!("{}: its token realm is no URL", self.host))
                })?;
                if sent.is_some() {
                    self.forget(scope, sent).await;
                }
                self.learn(Known::Bearer { realm, service });
                Ok(())
            }
            Err(offered) => {
                let message = format!(
                    "{}: it wants a sign-in that landfall cannot do (offered: {}; known: Basic, Bearer)",
                    self.host,
                    if offered.is_empty() { "nothing".into() } else { offered.join(", ") }
                );
                Err(Error::new(ErrorKind::Denied, message))
            }
        }
    }

    /// The error for a request that is refused although it was signed in, or could not be.
    pub(super) async fn denied(&self, scope: &Scope, status: u16) -> Error {
        let who = match self.credential(scope).await {
            Ok(Some(account)) => format!("{account} may not do this"),
            _ => "there is no account for it; sign in with docker or podman login, or name credentials in the site".into(),
        };
        let what = if scope.push { "write to" } else { "read" };
        let message = format!("{}: may not {what} {} ({status}): {who}", self.host, scope.repository);
        Error::new(ErrorKind::Denied, message)
    }

    /// `Authorization` with the account for `scope` as it is, for what takes no tokens.
    pub(super) async fn basic(&self, scope: &Scope) -> Result<Option<String>, Error> {
        if let Some(error) = self.refused.lock().ok().and_then(|refused| refused.clone()) {
            return Err(error);
        }
        Ok(self.credential(scope).await?.and_then(|account| account.secret.basic_header()))
    }

    async fn credential(&self, scope: &Scope) -> Result<Option<Credential>, Error> {
        if !self.trusted {
            return Ok(None);
        }
        let found = self.keychain.find(&self.host, &scope.repository).await;
        found.map_err(|why| Error::new(ErrorKind::Local, why))
    }

    fn no_account(&self, scope: &Scope) -> Error {
        let mut message = format!(
            "{}: it wants a sign-in for {}, and there is no account for it",
            self.host, scope.repository
        );
        message += match self.trusted {
            true => "; sign in with docker or podman login, or name credentials in the site",
            false => {
                "; name credentials in the site or sign in with docker or podman login, and say --plain-http, or \
                 plainHTTP: true in the site: over http that was found by probing none is ever sent"
            }
        };
        Error::new(ErrorKind::Denied, message)
    }

    /// A refusal of presented credentials is final for all workers, so that no account gets locked.
    fn refuse(&self, account: &Credential) -> Error {
        let hint = match &account.secret {
            Secret::Basic(user, _) if user == "robot" => {
                "; the user name is 'robot' alone: was a $ in it expanded by a shell?"
            }
            _ => "",
        };
        let error = Error::new(ErrorKind::Denied, format!("{}: {account} was refused{hint}", self.host));
        if let Ok(mut refused) = self.refused.lock() {
            *refused = Some(error.clone());
        }
        error
    }

    fn slot(&self, scope: &Scope) -> Arc<tokio::sync::Mutex<Option<Token>>> {
        let mut tokens = self.tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tokens.entry(scope.clone()).or_default().clone()
    }

    async fn forget(&self, scope: &Scope, sent: Option<&str>) {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        // another worker may have a new one already
        if token.as_ref().is_some_and(|token| Some(token.signed.header.as_str()) == sent) {
            *token = None;
        }
    }

    async fn token(&self, scope: &Scope, realm: &Url, service: Option<&str>) -> Result<Signed, Error> {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        if let Some(token) = token.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.signed.clone());
        }
        if let Some(error) = self.refused.lock().ok().and_then(|refused| refused.clone()) {
            return Err(error);
        }
        let account = self.credential(scope).await?.filter(|_| self.may_have_secret(realm));
        let fresh = self.fetch(scope, realm, service, account.as_ref()).await?;
        let signed = fresh.signed.clone();
        *token = Some(fresh);
        Ok(signed)
    }

    /// Secrets go to an https realm whose certificate is checked; over http only to the registry itself.
    fn may_have_secret(&self, realm: &Url) -> bool {
        realm.origin() == self.base.origin()
            || (realm.scheme() == "https" && self.transport.checks_certificate(realm))
    }

    async fn fetch(
        &self,
        scope: &Scope,
        realm: &Url,
        service: Option<&str>,
        account: Option<&Credential>,
    ) -> Result<Token, Error> {
        let mut request = match account.map(|account| &account.secret) {
            Some(Secret::Identity(refresh)) => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                form.append_pair("grant_type", "refresh_token").append_pair("refresh_token", refresh);
                form.append_pair("client_id", "landfall").append_pair("scope", &scope.words().join(" "));
                service.map(|service| form.append_pair("service", service));
                let mut request = Request::new(Method::POST, realm.clone(), Why::Token)
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                request.body = Body::Bytes(form.finish().into());
                request
            }
            basic => {
                let mut url = realm.clone();
                {
                    let mut query = url.query_pairs_mut();
                    service.map(|service| query.append_pair("service", service));
                    scope.words().iter().for_each(|word| {
                        query.append_pair("scope", word);
                    });
                }
                let request = Request::new(Method::GET, url, Why::Token);
                match basic.and_then(Secret::basic_header) {
                    Some(header) => request.header(AUTHORIZATION, &header),
                    None => request,
                }
            }
        };
        request.origin = None;
        let failed = |error: Error| Error {
            message: format!("{}: its token service does not answer: {}", self.host, error.message),
            ..error
        };
        let response = self.transport.send(&request).await.map_err(failed)?;
        let status = response.status;
        match (status.as_u16(), account) {
            (401, Some(account)) => return Err(self.refuse(account)),
            (401 | 403, None) => return Err(self.no_account(scope)),
            // the account is good, but not for this scope
            (403, Some(_)) => return Err(self.denied(scope, 403).await),
            _ => {}
        }
        let shown = shown_url(realm);
        if !status.is_success() {
            let message = format!("{}: its token service {shown} answered {status}", self.host);
            return Err(Error::new(ErrorKind::Status(status.as_u16()), message));
        }
        #[derive(Deserialize)]
        struct Answer {
            token: Option<String>,
            access_token: Option<String>,
            expires_in: Option<u64>,
        }
        let body = response.bytes(self.transport.limits().document_bytes).await?;
        let answer: Option<Answer> = serde_json::from_slice(&body).ok();
        const DAY: u64 = 24 * 3600;
        let lifetime = answer.as_ref().and_then(|answer| answer.expires_in).unwrap_or(60).min(DAY);
        let token =
            answer.and_then(|answer| answer.token.or(answer.access_token)).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| match looks_like_page(&body) {
            true => came_instead(&shown, None, &format!("a token for {}", self.host), &body),
            false => {
                let message = format!("{}: its token service {shown} gave no token", self.host);
                Error::new(ErrorKind::Invalid, message)
            }
        })?;
        // refreshed early: half a minute, or half of a short life
        let early = (lifetime / 2).min(30);
        let until = Instant::now() + Duration::from_secs(lifetime.saturating_sub(early).max(1));
        Ok(Token { signed: Signed::new(format!("Bearer {token}")), until })
    }

    /// An anonymous token for a host that the registry redirected to and that has a realm of its own.
    pub(super) async fn foreign(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &Scope,
    ) -> Result<String, Error> {
        let Ok(Challenge::Bearer { realm, service, scope: wanted }) = challenge::read(headers) else {
            let message = format!("{}: redirected to {}, which wants a sign-in", self.host, shown_url(url));
            return Err(Error::new(ErrorKind::Denied, message));
        };
        let wrong =
            |_| Error::new(ErrorKind::Invalid, format!("{}: its token realm is no URL", shown_url(url)));
        let realm = url.join(&realm).map_err(wrong)?;
        let repository =
            wanted.as_deref().and_then(|word| word.split(':').nth(1)).unwrap_or(&scope.repository);
        let scope = Scope { repository: repository.into(), push: false, from: None };
        Ok(self.fetch(&scope, &realm, service.as_deref(), None).await?.signed.header)
    }
}
