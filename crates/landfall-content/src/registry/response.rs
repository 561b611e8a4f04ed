//! Checks the responses of a registry and explains errors.

use super::challenge::TokenScope;
use super::error_codes::{is_quota_error, known_cause};
use super::manifests::content_digest;
use super::session::RegistrySession;
use landfall_http::{DistributionError, ErrorKind, HttpError, HttpResponse, SIGN_IN_HINT, host_of};
#[cfg(any(test, fuzzing, feature = "testkit"))]
use landfall_http::{api_errors, describe};
use landfall_model::redact_urls;
use reqwest::{Method, StatusCode};
use url::Url;

impl RegistrySession {
    /// Returns the response if its status is `good` and it is not an HTML page; otherwise an error
    /// with the message of the registry.
    pub(super) async fn expect(
        &self,
        response: HttpResponse,
        scope: &TokenScope,
        what: impl Fn() -> String,
        good: impl FnOnce(StatusCode) -> bool,
    ) -> Result<HttpResponse, HttpError> {
        let mut response = self.expect_status(response, scope, &what, good).await?;
        if response.is_page().await {
            Err(response.page_error(&what()).await)
        } else {
            Ok(response)
        }
    }

    /// Returns the response if its status is `good`; otherwise an error with the message of the
    /// registry.
    pub(super) async fn expect_status(
        &self,
        response: HttpResponse,
        scope: &TokenScope,
        what: impl FnOnce() -> String,
        good: impl FnOnce(StatusCode) -> bool,
    ) -> Result<HttpResponse, HttpError> {
        let status = response.status;
        if good(status) {
            return Ok(response);
        }
        let url = response.url.clone();
        let method = response.method.clone();
        let is_registry = response.header("docker-distribution-api-version").is_some();
        let location = response.location().filter(|_| status.is_redirection());
        let words = response.server_words().await;
        let host = host_of(&url);
        // registries name themselves in a header or send error objects; other web servers do
        // neither. A server that gets a PUT has accepted the beginning of an upload, and one that
        // redirects to a storage is a registry.
        let may_be_strange =
            method != Method::HEAD && method != Method::PUT && url.origin() == self.base.origin();
        let strange = may_be_strange && !is_registry && words.errors.is_empty();
        let advice = match status.as_u16() {
            400 if url.scheme() == "http" && wants_tls(&words.body) => plain_http_advice(&url),
            // Gitea answers so to an upload for an account that does not exist (`Not found.` by
            // `UserAssignmentWeb` in services/context/user.go of code.gitea.io/gitea v1.26.0)
            404 if strange && method == Method::POST => format!(
                "; create the account or project there first, unless {host} is not a registry at \
                 all"
            ),
            404 | 405 | 501 if strange => {
                format!("; this is not a registry: is {host} the right host and port?")
            }
            404 | 405 | 406 | 415 | 501 if method == Method::PUT && words.errors.is_empty() => {
                "; the registry does not accept this kind of manifest, or not by this request"
                    .to_owned()
            }
            // beyond a limit of its packages, Gitea answers so (`apiError` in
            // routers/api/packages/container/container.go of code.gitea.io/gitea v1.26.0)
            403 if is_registry && words.errors.is_empty() && words.text.is_empty() => {
                "; it gives no reason: the account lacks the right, or a limit is reached (Gitea: \
                 `LIMIT_…` in `[packages]` of its app.ini)"
                    .to_owned()
            }
            429 => format!(": its rate limit is reached{SIGN_IN_HINT}, or run it again later"),
            300..400 => match location {
                Some(to) => format!(
                    "; a redirect of {method} to {} is not followed: configure the address that \
                     the registry itself uses",
                    redact_urls(&to)
                ),
                None => "; it redirects without saying where (`Location`)".to_owned(),
            },
            _ => known_cause(status.as_u16(), &words.errors, &words.text)
                .map(|advice| format!("; {advice}"))
                .unwrap_or_default(),
        };
        let text = format!("{host} answered {status}{}{advice}", words.text);
        Err(self
            .status_error(status, scope, text, words.errors)
            .await
            .at(&url)
            .about(what()))
    }

    /// Returns the error for a response with this status and these error objects.
    pub(super) async fn status_error(
        &self,
        status: StatusCode,
        scope: &TokenScope,
        words: String,
        codes: Vec<DistributionError>,
    ) -> HttpError {
        let mut error = match status.as_u16() {
            404 | 410 => HttpError::new(ErrorKind::NotFound, words),
            // the account may write, so advice about accounts would mislead
            403 if is_quota_error(ErrorKind::Denied, &codes) => {
                HttpError::new(ErrorKind::Denied, words)
            }
            401 | 403 => {
                let why = self.auth.denied(scope, status).await;
                // only its message: host and status are in `words` already
                HttpError::new(ErrorKind::Denied, format!("{words}; {}", why.message()))
            }
            code => HttpError::new(ErrorKind::Status(code), words),
        };
        error.codes = codes;
        error.with_status(status)
    }
}

/// Whether a successful response to a HEAD is an HTML page. It has no body that shows this, but a
/// page has no digest.
pub(super) fn is_page_for_head(response: &HttpResponse) -> bool {
    response.says_page() && content_digest(response).is_none()
}

/// Returns the advice for plain http sent to an https server.
pub(super) fn plain_http_advice(url: &Url) -> String {
    format!(
        "; if it speaks TLS at this port, leave out --plain-http {}, and plainHTTP of the site",
        host_of(url)
    )
}

/// Whether an https server complains about plain http, in the words of Go, nginx or Apache.
fn wants_tls(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    [
        "http request to an https server",
        "http request was sent to https port",
        "speaking plain http to an ssl-enabled",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Describes `bytes` as the body of an error response.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) -> String {
    let _ = wants_tls(bytes);
    let errors = api_errors(bytes);
    let _ = known_cause(400, &errors, "");
    describe(&errors, bytes, None, None) + &describe(&errors, bytes, Some("text/html"), Some("s"))
}

/// The URL of a registry's API, and how it was found.
#[derive(Debug, Clone)]
pub struct BaseUrl {
    /// The URL, with the path of a mirror.
    pub url: Url,
    /// The host that a mirror replaces; `None` without a mirror.
    pub origin: Option<String>,
    /// Whether credentials may be sent: not over plain http that was found by probing.
    pub trusted: bool,
    /// Whether the tag lists at this URL are complete. A caching mirror may omit tags.
    pub lists_all_tags: bool,
}
