//! Bearer tokens: parses the response of a token service and decides how long its token is used.

use landfall_http::{ErrorKind, HttpError};
use landfall_model::from_json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

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
/// host instead of a scheme.
///
/// # Errors
/// If the realm is not a URL.
pub fn realm_url(request_url: &Url, realm: &str) -> Result<Url, HttpError> {
    let first = realm.split('/').next().unwrap_or_default();
    // like the first component of an image reference
    let is_host = !first.ends_with(':')
        && !first.starts_with('.')
        && (first.contains(['.', ':']) || first == "localhost");
    let url = if is_host {
        Url::parse(&format!("{}://{realm}", request_url.scheme()))
    } else {
        request_url.join(realm)
    };
    url.map_err(|error| {
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
        assert_eq!(header(r#"{"token":"","access_token":null}"#), None);
    }
}
