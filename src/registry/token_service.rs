//! Fetches Bearer tokens from the token service that a registry names: one for each scope, for all workers.

use super::auth::Auth;
use super::challenge::Challenge;
use super::credential::{Credential, Secret};
use super::scope::Scope;
use super::token::{Authorization, Token, realm_url};
use crate::http::{Body, Error, ErrorKind, Purpose, Request, came_instead, looks_like_page, shown_url};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use std::sync::Arc;
use tokio::time::Instant;
use url::Url;

impl Auth {
    fn slot(&self, scope: &Scope) -> Arc<tokio::sync::Mutex<Option<Token>>> {
        let mut tokens = self.tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tokens.entry(scope.clone()).or_default().clone()
    }

    /// Forgets the token that was `sent`.
    pub(super) async fn forget(&self, scope: &Scope, sent: Option<&str>) {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        // another worker may have a new one already
        if token.as_ref().is_some_and(|token| Some(token.authorization.header.as_str()) == sent) {
            *token = None;
        }
    }

    /// The token for `scope`, fetched once for all workers.
    pub(super) async fn token(
        &self,
        scope: &Scope,
        realm: &Url,
        service: Option<&str>,
    ) -> Result<Authorization, Error> {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        if let Some(token) = token.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.authorization.clone());
        }
        self.final_refusal()?;
        let account = self.credential(scope).await?.filter(|_| self.may_have_secret(realm));
        let fresh = self.fetch(scope, realm, service, account.as_ref()).await?;
        let authorization = fresh.authorization.clone();
        *token = Some(fresh);
        Ok(authorization)
    }

    /// Whether secrets may go to this realm: over https with a checked certificate, over http only to the registry
    /// itself.
    fn may_have_secret(&self, realm: &Url) -> bool {
        realm.origin() == self.base.origin()
            || (realm.scheme() == "https" && self.transport.checks_certificate(realm))
    }

    /// Asks the token service for a token.
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
                let mut request = Request::new(Method::POST, realm.clone(), Purpose::Token)
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
                let request = Request::new(Method::GET, url, Purpose::Token);
                match basic.and_then(Secret::basic_header) {
                    Some(header) => request.header(AUTHORIZATION, &header),
                    None => request,
                }
            }
        };
        request.origin = None;
        let failed = |error: Error| {
            let words = format!("its token service does not answer: {error}");
            Error::new(error.kind, words).at(realm).about(&*self.host).caused_by(error)
        };
        let response = self.transport.send(&request).await.map_err(failed)?;
        let status = response.status;
        match (status.as_u16(), account) {
            (401, Some(account)) => return Err(self.refuse(account)),
            (401 | 403, None) => return Err(self.no_account(scope)),
            // the account is good, but not for this scope
            (403, Some(_)) => return Err(self.denied(scope, status).await),
            _ => {}
        }
        let shown = shown_url(realm);
        if !status.is_success() {
            let words = format!("its token service {shown} answered {status}");
            let error = Error::new(ErrorKind::Status(status.as_u16()), words);
            return Err(error.at(realm).about(&*self.host));
        }
        let body = response.bytes(self.transport.limits().document_bytes).await?;
        Token::read(&body).ok_or_else(|| match looks_like_page(&body) {
            true => came_instead(realm, None, &format!("a token for {}", self.host), &body),
            false => {
                let words = format!("its token service {shown} gave no token");
                Error::new(ErrorKind::Invalid, words).at(realm).about(&*self.host)
            }
        })
    }

    /// An anonymous token for a host that the registry redirects to and that has a realm of its own.
    pub(super) async fn foreign(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &Scope,
    ) -> Result<String, Error> {
        let Ok(Challenge::Bearer { realm, service, scope: wanted }) = Challenge::read(headers) else {
            let words = format!("redirected to {}, which wants a sign-in", shown_url(url));
            return Err(Error::new(ErrorKind::Denied, words).at(url).about(&*self.host));
        };
        let realm = realm_url(url, &realm)?;
        let repository =
            wanted.as_deref().and_then(|word| word.split(':').nth(1)).unwrap_or(&scope.repository);
        let scope = Scope { repository: repository.into(), push: false, from: None };
        Ok(self.fetch(&scope, &realm, service.as_deref(), None).await?.authorization.header)
    }
}
