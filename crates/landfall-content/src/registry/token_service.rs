//! Fetches Bearer tokens from the token service of a registry, or of a host that it redirects to:
//! one for each scope, shared by all workers.

use super::auth::{Auth, RequestAccount};
use super::challenge::{Challenge, TokenScope};
use super::credential::{AccountState, Credential, RegistrySecret};
use landfall_http::{
    BodyFailure, ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose, api_errors,
    describe, host_port, is_html, page_error, redacted_url,
};
use landfall_model::{from_json, keeping_https, locked};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
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
            .filter(|_| self.may_have_secret(realm) && !signer.state.is_left_out(scope))
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
        let mut answer = self.fetch(&scopes, realm, service, Some(account)).await;
        if let Err(error) = &answer
            && error.kind == ErrorKind::Status(400)
            && let Some(other) = scope.without_delete()
        {
            scopes = other.to_strings();
            answer = self.fetch(&scopes, realm, service, Some(account)).await;
        }
        let mut answer = answer?;
        if answer.as_ref().is_err_and(TokenRefusal::is_of_account) && state.was_accepted() {
            tokio::time::sleep(self.transport.retry_policy().pause(1)).await;
            // during the pause, another worker may have found that the account or scope is denied
            state.check(scope)?;
            answer = self.fetch(&scopes, realm, service, Some(account)).await?;
        }
        let refusal = match answer {
            Ok(token) => {
                state.account_accepted();
                return Ok(token);
            }
            Err(refusal) => refusal,
        };
        // 403 denies the scope; 401 denies an account that was never accepted; for an accepted
        // account, a request without a scope decides
        let everywhere = refusal.is_of_account()
            && (!state.was_accepted()
                || matches!(
                    self.fetch(&[], realm, service, Some(account)).await,
                    Ok(Err(other)) if other.is_of_account()
                ));
        let TokenRefusal { status, said } = refusal;
        if everywhere {
            return Err(self.deny_account(account, state, &said));
        }
        let error = self.denied(scope, status).await.hint(&said);
        // public content needs no account, and an account may have no right to it
        if scope.may_be_anonymous()
            && let Ok(Ok(token)) = self.fetch(&scope.to_strings(), realm, service, None).await
        {
            let note = format!(
                "{}: {account} gets no token for some repositories, which are read without an \
                 account",
                self.host
            );
            self.transport.note_once(&note);
            state.leave_out(scope, error);
            return Ok(token);
        }
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
        match self
            .fetch(&scope.to_strings(), realm, service, None)
            .await?
        {
            Ok(token) => Ok(token),
            Err(refusal) => Err(self.no_account(scope).await.hint(&refusal.said)),
        }
    }

    /// Whether secrets may be sent to this realm: its origin is that of the registry, or it uses
    /// https and its certificate is checked.
    pub(super) fn may_have_secret(&self, realm: &Url) -> bool {
        realm.origin() == self.base.origin()
            || (realm.scheme() == "https" && self.transport.checks_certificate(realm))
    }

    /// Requests a token for these scopes. Fails if the request fails, or the response is invalid.
    async fn fetch(
        &self,
        scopes: &[String],
        realm: &Url,
        service: Option<&str>,
        account: Option<&Credential>,
    ) -> Result<Result<BearerToken, TokenRefusal>, HttpError> {
        let policy = self.transport.retry_policy();
        let has_password =
            account.is_some_and(|account| matches!(account.secret, RegistrySecret::Basic(..)));
        let fetch = || self.fetch_once(scopes, realm, service, account, false);
        match policy.read_body(fetch).await {
            // some services answer only POST (distribution OAuth2 specification)
            Err(error)
                if has_password && matches!(error.kind, ErrorKind::Status(404 | 405 | 501)) =>
            {
                let fetch = || self.fetch_once(scopes, realm, service, account, true);
                policy.read_body(fetch).await.map_err(|_| error)
            }
            answer => answer,
        }
    }

    /// Requests a token once. A refresh token is sent in a form, and so is a password if `by_form`
    /// is set.
    async fn fetch_once(
        &self,
        scopes: &[String],
        realm: &Url,
        service: Option<&str>,
        account: Option<&Credential>,
        by_form: bool,
    ) -> Result<Result<BearerToken, TokenRefusal>, BodyFailure<HttpError>> {
        let secret = account.map(|account| &account.secret);
        let grant = match secret {
            Some(RegistrySecret::Identity(refresh)) => Some(vec![
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh.as_str()),
            ]),
            Some(RegistrySecret::Basic(user, password)) if by_form => Some(vec![
                ("grant_type", "password"),
                ("username", user.as_str()),
                ("password", password.as_str()),
            ]),
            _ => None,
        };
        let has_form = grant.is_some();
        let mut request = match grant {
            Some(grant) => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                form.extend_pairs(grant)
                    // required by the OAuth2 specification of distribution
                    .append_pair("client_id", "landfall");
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
            None => {
                let mut url = realm.clone();
                {
                    let mut query = url.query_pairs_mut();
                    service.map(|service| query.append_pair("service", service));
                    scopes.iter().for_each(|word| {
                        query.append_pair("scope", word);
                    });
                }
                let request = HttpRequest::new(Method::GET, url, RequestPurpose::Token);
                let header = secret.and_then(RegistrySecret::basic_header);
                request.optional_header(AUTHORIZATION, header.as_deref())
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
            return Ok(Err(TokenRefusal { status, said }));
        }
        let realm_name = redacted_url(realm);
        let body = response
            .bytes(self.transport.limits().document_bytes)
            .await
            .map_err(BodyFailure::reading)?;
        if !status.is_success() {
            // a rejected refresh token or password in a form is answered with 400, not 401
            let said = describe(&api_errors(&body), &body, None, None);
            if has_form && is_invalid_grant(status, &body) {
                let status = StatusCode::UNAUTHORIZED;
                return Ok(Err(TokenRefusal { status, said }));
            }
            let words = format!("its token service {realm_name} answered {status}{said}");
            let error = HttpError::new(ErrorKind::Status(status.as_u16()), words);
            return Err(error.at(realm).about(&*self.host).into());
        }
        if let Some(token) = BearerToken::parse(&body) {
            return Ok(Ok(token));
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
            ..TokenScope::default()
        };
        *token = Some(
            self.anonymous_token(&there, &realm, service.as_deref())
                .await?,
        );
        Ok(())
    }
}

/// Whether a token service rejects a refresh token or a password (RFC 6749, section 5.2).
fn is_invalid_grant(status: StatusCode, body: &[u8]) -> bool {
    let document: Option<serde_json::Value> = from_json(body).ok();
    status == StatusCode::BAD_REQUEST
        && document.is_some_and(|document| document["error"] == "invalid_grant")
}

/// The answer of a token service that denies the account or the scope.
struct TokenRefusal {
    /// A rejected refresh token counts as 401.
    status: StatusCode,
    /// The words of the service.
    said: String,
}

impl TokenRefusal {
    fn is_of_account(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}

// Bearer tokens: parses the response of a token service and decides how long its token is used.

/// The `Authorization` header of a request.
#[derive(Clone)]
pub(super) struct Authorization {
    pub(super) header: String,
    /// Whether the registry has accepted it once. If it is denied later, the token has expired.
    pub(super) accepted: Arc<AtomicBool>,
}

impl Authorization {
    /// Returns a header that was not accepted yet.
    pub(super) fn new(header: String) -> Authorization {
        Authorization {
            header,
            accepted: Arc::default(),
        }
    }
}

/// A token and the time until which it is used.
pub(super) struct BearerToken {
    pub(super) authorization: Authorization,
    pub(super) until: Instant,
}

impl BearerToken {
    /// Parses the response of a token service. Returns `None` if it has no token.
    pub(super) fn parse(body: &[u8]) -> Option<BearerToken> {
        #[derive(Deserialize)]
        struct TokenResponse<'a> {
            token: Option<String>,
            access_token: Option<String>,
            // not a `Value`, which takes much more memory than its text
            #[serde(borrow)]
            expires_in: Option<&'a RawValue>,
        }
        const DAY: u64 = 24 * 3600;
        let answer: TokenResponse = from_json(body).ok()?;
        let lifetime = answer
            .expires_in
            .and_then(|text| seconds(text.get()))
            // 60 seconds is the default of the distribution token specification
            .unwrap_or(60)
            .min(DAY);
        // services send `token`, `access_token` or both; an empty one is ignored
        let token = [answer.token, answer.access_token]
            .into_iter()
            .flatten()
            // a script that serves tokens may leave a line break, which no header can have
            .map(|token| token.trim().to_owned())
            .find(|token| !token.is_empty())?;
        // renewed 30 seconds before it expires, or halfway if it lives for less than a minute
        let early = (lifetime / 2).min(30);
        // counted from receipt, by the monotonic clock: `issued_at` depends on the service's clock
        let until = Instant::now() + Duration::from_secs(lifetime.saturating_sub(early).max(1));
        Some(BearerToken {
            authorization: Authorization::new(format!("Bearer {token}")),
            until,
        })
    }
}

/// Reads `bytes` as the response of a token service.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz_token(bytes: &[u8]) {
    drop(BearerToken::parse(bytes));
}

/// Parses a number of seconds. Some token services write it with a fraction, others as a string.
fn seconds(json: &str) -> Option<u64> {
    let number: f64 = serde_json::from_str(json).ok().or_else(|| {
        let text: String = serde_json::from_str(json).ok()?;
        text.trim().parse().ok()
    })?;
    // the cast saturates at 0 and at the largest number
    number.is_finite().then_some(number as u64)
}

/// Returns the URL of a token realm. It may be relative to the URL of the request, or begin with a
/// host instead of a scheme. Harbor behind a proxy that ends TLS names its own URL with http; then
/// it is that with https.
///
/// # Errors
/// If the realm is not a URL.
pub fn realm_url(request_url: &Url, realm: &str) -> Result<Url, HttpError> {
    let first = realm.split('/').next().unwrap_or_default();
    // like the first component of an image reference
    let is_host = !first.ends_with(':')
        && !first.starts_with('.')
        && (first.contains(['.', ':']) || first == "localhost");
    // Nexus 3.77 names the scheme `null`
    let mut missing = ["null://", "://"].into_iter();
    let rest = missing.find_map(|scheme| realm.strip_prefix(scheme));
    let url = match rest.or_else(|| is_host.then_some(realm)) {
        Some(rest) => Url::parse(&format!("{}://{rest}", request_url.scheme())),
        None => request_url.join(realm),
    };
    url.map(|realm| keeping_https(request_url, realm))
        .map_err(|error| {
            HttpError::new(ErrorKind::Invalid, "its token realm is not a URL")
                .at(request_url)
                .caused_by(error)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_or_a_string_and_bounded() {
        let lives = |text: &str| {
            let body = format!(r#"{{"token":"t","expires_in":{text}}}"#);
            (BearerToken::parse(body.as_bytes()).unwrap().until - Instant::now())
                .as_secs_f64()
                .round() as u64
        };
        for text in ["300", "300.0", "\"300\"", "\" 300.7 \""] {
            assert_eq!(lives(text), 270, "{text}");
        }
        for text in ["null", "[]", "\"soon\"", "\"NaN\"", "true"] {
            assert_eq!(lives(text), 30, "{text}: the default is a minute");
        }
        assert_eq!(
            (lives("-5"), lives("1e300"), lives("0")),
            (1, 24 * 3600 - 30, 1)
        );
    }

    #[test]
    fn a_realm_may_be_relative_or_lack_its_scheme() {
        let request = Url::parse("https://r.test/v2/a/manifests/v1").unwrap();
        for (realm, expected) in [
            ("https://auth.test/token", "https://auth.test/token"),
            ("//auth.test/token", "https://auth.test/token"),
            (
                "auth.test/token?x=http://y",
                "https://auth.test/token?x=http://y",
            ),
            ("auth.test", "https://auth.test/"),
            ("localhost:5001/token", "https://localhost:5001/token"),
            ("/service/token", "https://r.test/service/token"),
            ("../token", "https://r.test/v2/a/token"),
            ("HTTPS://Auth.test/token", "https://auth.test/token"),
            ("http://auth.test/token", "http://auth.test/token"),
            (
                "http://r.test/service/token",
                "https://r.test/service/token",
            ),
            ("http://r.test:8080/token", "http://r.test:8080/token"),
            ("http://r.test:443/token", "https://r.test/token"),
            (
                "null://r.test:5000/v2/token",
                "https://r.test:5000/v2/token",
            ),
            ("://r.test/v2/token", "https://r.test/v2/token"),
        ] {
            assert_eq!(realm_url(&request, realm).unwrap().as_str(), expected);
        }
        assert!(realm_url(&request, "https://").is_err());
    }

    #[test]
    fn an_empty_token_is_ignored_and_access_token_is_used() {
        let header = |body: &str| {
            BearerToken::parse(body.as_bytes()).map(|token| token.authorization.header)
        };
        assert_eq!(
            header(r#"{"token":"","access_token":"a"}"#).as_deref(),
            Some("Bearer a")
        );
        assert_eq!(
            header(r#"{"token":"t","access_token":"a"}"#).as_deref(),
            Some("Bearer t")
        );
        assert_eq!(header(r#"{"token":" t\n"}"#).as_deref(), Some("Bearer t"));
        assert_eq!(header(r#"{"token":"","access_token":null}"#), None);
    }
}
