//! Checks the responses of a registry and explains errors.

use super::error_codes::is_quota_error;
use super::scope::TokenScope;
use super::session::{RegistrySession, host_of};
use landfall_http::{
    DistributionError, ErrorKind, HttpError, HttpResponse, SIGN_IN_HINT, is_html, is_html_type,
    page_title,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
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
        let response = self.expect_status(response, scope, &what, good).await?;
        if response.is_page() {
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
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let url = response.url.clone();
        let has_body = response.method != Method::HEAD;
        let is_registry = response.header("docker-distribution-api-version").is_some();
        // the body only explains the status, so an unreadable one is treated as empty
        let body = response.bytes(64 << 10).await.unwrap_or_default();
        let host = host_of(&url);
        let detail = describe(&body, content_type.as_deref());
        // registries name themselves in a header or send error objects; other web servers do
        // neither
        let strange = has_body && !is_registry && api_errors(&body).is_empty();
        let advice = match status.as_u16() {
            400 if url.scheme() == "http" && wants_tls(&body) => plain_http_advice(&url),
            404 | 405 | 501 if strange => {
                format!("; this is not a registry: is {host} the right host and port?")
            }
            429 => format!(": its rate limit is reached{SIGN_IN_HINT}, or run it again later"),
            _ => String::new(),
        };
        let words = format!("{host} answered {status}{detail}{advice}");
        Err(self
            .status_error(status, scope, words, api_errors(&body))
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

/// Parses the error objects in a body (distribution-spec, "Error Codes").
pub(super) fn api_errors(body: &[u8]) -> Vec<DistributionError> {
    #[derive(Deserialize)]
    struct ErrorDocument {
        errors: Vec<Value>,
    }
    let document: Option<ErrorDocument> = serde_json::from_slice(body).ok();
    document
        .iter()
        .flat_map(|document| &document.errors)
        .map(|error| DistributionError {
            code: text_member(error, "code"),
            message: text_member(error, "message"),
            detail: error.get("detail").cloned().unwrap_or_default(),
        })
        .collect()
}

/// Returns the text of a member, or an empty string if the member is missing or not a string. The
/// specification requires only `code`, and some registries send values of other types.
fn text_member(error: &Value, key: &str) -> String {
    error
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
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

/// Describes an unexpected body: its distribution API errors, or the title of an HTML page. Returns
/// an empty string for any other body.
pub(super) fn describe(body: &[u8], content_type: Option<&str>) -> String {
    let errors = api_errors(body);
    let words = errors.iter().map(|error| {
        format!("{} {}", error.code, error.message)
            .trim()
            .to_owned()
    });
    let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
    if !words.is_empty() {
        return format!(": {}", words.join("; "));
    }
    if content_type.is_some_and(is_html_type) || is_html(body) {
        let titled = page_title(body)
            .map(|title| format!(", titled '{title}'"))
            .unwrap_or_default();
        return format!(" (an HTML page{titled}: from a proxy?)");
    }
    String::new()
}

/// Describes `bytes` as the body of an error response.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) -> String {
    let _ = wants_tls(bytes);
    describe(bytes, None) + &describe(bytes, Some("text/html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_are_described() {
        let body =
            br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{}}]}"#;
        assert_eq!(describe(body, None), ": MANIFEST_UNKNOWN manifest unknown");
        let page = b"<!DOCTYPE html><html><head><TITLE> Blocked </TITLE>";
        assert!(describe(page, Some("text/html")).contains("titled 'Blocked'"));
        assert_eq!(describe(b"", None), "");
    }
}
