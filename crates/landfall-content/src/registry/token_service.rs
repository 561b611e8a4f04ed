//! Fetches Bearer tokens from the token service of a registry, or of a host that it redirects to:
//! one for each scope, shared by all workers.

use super::account_state::AccountState;
use super::auth::{Auth, RequestAccount};
use super::challenge::Challenge;
use super::credential::{Credential, RegistrySecret};
use super::scope::TokenScope;
use super::token::{Authorization, BearerToken, realm_url};
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose, api_errors, describe,
    host_port, is_html, page_error, redacted_url,
};
use landfall_model::{from_json, locked};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use tokio::time::Instant;
use url::{Origin, Url};

impl Auth {
    fn slot(&self, scope: &TokenScope) -> Arc<tokio::sync::Mutex<Option<BearerToken>>> {
        let mut tokens = locked(&self.tokens);
        tokens.entry(scope.clone()).or_default().clone()
    }

    /// Forgets the token of a scope if it is the one in the header `sent`.
    pub(super) async fn forget(&self, scope: &TokenScope, sent: Option<&str>) {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        // another worker may have fetched a new one already
        if token
            .as_ref()
            .is_some_and(|token| Some(token.authorization.header.as_str()) == sent)
        {
            *token = None;
        }
    }

    /// Returns the token for `scope`, which is fetched once for all workers.
    pub(super) async fn token(
        &self,
        scope: &TokenScope,
        realm: &Url,
        service: Option<&str>,
        signer: &RequestAccount,
    ) -> Result<Authorization, HttpError> {
        let slot = self.slot(scope);
        let mut token = slot.lock().await;
        if let Some(token) = token.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.authorization.clone());
        }
        // the worker that held the slot before may have been denied
        signer.state.check(scope)?;
        let fresh = match signer
            .account
            .as_ref()
            // any registry can name any realm, so the secret is sent only to a safe realm
            .filter(|_| self.may_have_secret(realm))
        {
            Some(account) => {
                self.token_for(account, &signer.state, scope, realm, service)
                    .await?
            }
            None => {
                // public images need no account, so unreadable credentials are only noted
                if let Err(fault) = self.account(scope).await {
                    let note = format!("{}: {fault}; continuing without an account", self.host);
                    self.transport.note_once(&note);
                }
                self.anonymous_token(scope, realm, service).await?
            }
        };
        let authorization = fresh.authorization.clone();
        *token = Some(fresh);
        Ok(authorization)
    }

    /// Fetches a token for an account. If the account was accepted before and is denied now, the
    /// request is repeated. If it is denied again, a request without a scope shows whether the
    /// account or only the scope is denied.
    async fn token_for(
        &self,
        account: &Credential,
        state: &AccountState,
        scope: &TokenScope,
        realm: &Url,
        service: Option<&str>,
    ) -> Result<BearerToken, HttpError> {
        let mut scopes = scope.to_strings();
        let mut failure = self.fetch(&scopes, realm, service, Some(account)).await;
        if let Err(TokenFailure::Error(error)) = &failure
            && error.kind == ErrorKind::Status(400)
            && let Some(other) = scope.without_delete()
        {
            scopes = other.to_strings();
            failure = self.fetch(&scopes, realm, service, Some(account)).await;
        }
        if matches!(
            failure,
            Err(TokenFailure::Refused(StatusCode::UNAUTHORIZED, _))
        ) && state.was_accepted()
        {
            tokio::time::sleep(self.transport.retry_policy().pause(1)).await;
            // during the pause, another worker may have found that the account or scope is denied
            state.check(scope)?;
            failure = self.fetch(&scopes, realm, service, Some(account)).await;
        }
        let (status, said) = match failure {
            Ok(token) => {
                state.account_accepted();
                return Ok(token);
            }
            Err(TokenFailure::Error(error)) => return Err(error),
            Err(TokenFailure::Refused(status, said)) => (status, said),
        };
        // 403 denies the scope; 401 denies an account that was never accepted; for an accepted
        // account, a request without a scope decides
        let everywhere = status == StatusCode::UNAUTHORIZED
            && (!state.was_accepted()
                || matches!(
                    self.fetch(&[], realm, service, Some(account)).await,
                    Err(TokenFailure::Refused(StatusCode::UNAUTHORIZED, _))
                ));
        if everywhere {
            return Err(self.deny_account(account, state, &said));
        }
        let error = self.denied(scope, status).await.hint(&said);
        state.deny_scope(scope, error.clone());
        Err(error)
    }

    /// Fetches a token without an account.
    pub(super) async fn anonymous_token(
        &self,
        scope: &TokenScope,
        realm: &Url,
        service: Option<&str>,
    ) -> Result<BearerToken, HttpError> {
        match self.fetch(&scope.to_strings(), realm, service, None).await {
            Ok(token) => Ok(token),
            Err(TokenFailure::Error(error)) => Err(error),
            Err(TokenFailure::Refused(_, said)) => Err(self.no_account(scope).await.hint(&said)),
        }
    }

    /// Whether secrets may be sent to this realm: its origin is that of the registry, or it uses
    /// https and its certificate is checked.
    pub(super) fn may_have_secret(&self, realm: &Url) -> bool {
        realm.origin() == self.base.origin()
            || (realm.scheme() == "https" && self.transport.checks_certificate(realm))
    }

    /// Requests a token for these scopes.
    async fn fetch(
        &self,
        scopes: &[String],
        realm: &Url,
        service: Option<&str>,
        account: Option<&Credential>,
    ) -> Result<BearerToken, TokenFailure> {
        let mut request = match account.map(|account| &account.secret) {
            Some(RegistrySecret::Identity(refresh)) => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                form.append_pair("grant_type", "refresh_token")
                    .append_pair("refresh_token", refresh);
                // required by the OAuth2 specification of distribution
                form.append_pair("client_id", "landfall");
                if !scopes.is_empty() {
                    form.append_pair("scope", &scopes.join(" "));
                }
                service.map(|service| form.append_pair("service", service));
                let mut request =
                    HttpRequest::new(Method::POST, realm.clone(), RequestPurpose::Token)
                        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                request.body = RequestBody::Bytes(form.finish().into());
                request
            }
            basic => {
                let mut url = realm.clone();
                {
                    let mut query = url.query_pairs_mut();
                    service.map(|service| query.append_pair("service", service));
                    scopes.iter().for_each(|word| {
                        query.append_pair("scope", word);
                    });
                }
                let request = HttpRequest::new(Method::GET, url, RequestPurpose::Token);
                match basic.and_then(RegistrySecret::basic_header) {
                    Some(header) => request.header(AUTHORIZATION, &header),
                    None => request,
                }
            }
        };
        request.secret = account.is_some();
        request.named_by = Some(host_port(&self.base));
        let response = self.transport.send(&request).await.map_err(|error| {
            let what = match error.kind {
                ErrorKind::Invalid => "cannot be used",
                _ => "does not answer",
            };
            let words = format!("its token service {what}: {error}");
            HttpError::new(error.kind, words)
                .at(realm)
                .about(&*self.host)
                .caused_by(error)
        })?;
        let status = response.status;
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let said = response.server_words().await.text;
            return Err(TokenFailure::Refused(status, said));
        }
        let realm_name = redacted_url(realm);
        let body = response
            .bytes(self.transport.limits().document_bytes)
            .await?;
        if !status.is_success() {
            let by_refresh_token = matches!(
                account,
                Some(Credential {
                    secret: RegistrySecret::Identity(_),
                    ..
                })
            );
            // a rejected refresh token is answered with 400, not 401
            let said = describe(&api_errors(&body), &body, None, None);
            if by_refresh_token && is_invalid_grant(status, &body) {
                return Err(TokenFailure::Refused(StatusCode::UNAUTHORIZED, said));
            }
            let words = format!("its token service {realm_name} answered {status}{said}");
            let error = HttpError::new(ErrorKind::Status(status.as_u16()), words);
            return Err(error.at(realm).about(&*self.host).into());
        }
        if let Some(token) = BearerToken::parse(&body) {
            return Ok(token);
        }
        if is_html(&body) {
            let what = format!("a token for {}", self.host);
            return Err(page_error(realm, None, &what, &body).into());
        }
        let words = format!("its token service {realm_name} returned no token");
        let error = HttpError::new(ErrorKind::Invalid, words);
        Err(error.at(realm).about(&*self.host).into())
    }

    /// Fetches an anonymous token for the host of `url`, which answered a redirected request of
    /// this scope with 401. `sent` are the `Authorization` headers that the request had, by origin.
    pub(super) async fn challenged_elsewhere(
        &self,
        headers: &HeaderMap,
        url: &Url,
        scope: &TokenScope,
        sent: &[(Origin, String)],
    ) -> Result<(), HttpError> {
        let Ok(Challenge::Bearer {
            realm,
            service,
            scope: wanted,
        }) = Challenge::read(headers)
        else {
            let words = format!(
                "redirected to {}, which requires authentication",
                redacted_url(url)
            );
            return Err(HttpError::new(ErrorKind::Denied, words)
                .at(url)
                .about(&*self.host));
        };
        let slot = self.foreign.slot(scope, url.origin());
        let mut token = slot.lock().await;
        // another worker may have fetched a new one already
        if let Some(token) = &*token
            && token.until > Instant::now()
            && sent
                .iter()
                .all(|(_, header)| *header != token.authorization.header)
        {
            return Ok(());
        }
        let realm = realm_url(url, &realm)?;
        self.transport
            // a public host must not lead to a private address
            .check_named_target(&realm, &host_port(url))
            .await?;
        let repository = wanted
            .as_deref()
            // the repository may have another name at this host, which the challenge contains
            .and_then(|word| word.split(':').nth(1))
            .unwrap_or(&scope.repository);
        let there = TokenScope {
            repository: repository.into(),
            push: false,
            delete: false,
            from: None,
        };
        *token = Some(
            self.anonymous_token(&there, &realm, service.as_deref())
                .await?,
        );
        Ok(())
    }
}

/// Whether a token service rejects a refresh token (RFC 6749, section 5.2).
fn is_invalid_grant(status: StatusCode, body: &[u8]) -> bool {
    let document: Option<serde_json::Value> = from_json(body).ok();
    status == StatusCode::BAD_REQUEST
        && document.is_some_and(|document| document["error"] == "invalid_grant")
}

/// Why a token service issued no token.
enum TokenFailure {
    /// The service denies the account or the scope, with these words. A rejected refresh token
    /// counts as 401.
    Refused(StatusCode, String),
    /// The request failed, or the response is invalid.
    Error(HttpError),
}

impl From<HttpError> for TokenFailure {
    fn from(error: HttpError) -> TokenFailure {
        TokenFailure::Error(error)
    }
}
