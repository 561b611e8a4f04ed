//! Bearer tokens: what a token service answers, and how long its token is good.

use crate::http::{Error, ErrorKind};
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// The `Authorization` header of a request.
#[derive(Clone)]
pub(super) struct Authorization {
    pub(super) header: String,
    /// The registry has taken it once: if it refuses it later, the token has expired.
    pub(super) taken: Arc<AtomicBool>,
}

impl Authorization {
    /// A header that no registry has taken yet.
    pub(super) fn new(header: String) -> Authorization {
        Authorization { header, taken: Arc::default() }
    }
}

/// A token, and until when it is used.
pub(super) struct Token {
    pub(super) authorization: Authorization,
    pub(super) until: Instant,
}

impl Token {
    /// The token in the answer of a token service; `None` where it gave none.
    pub(super) fn read(body: &[u8]) -> Option<Token> {
        #[derive(Deserialize)]
        struct Answer {
            token: Option<String>,
            access_token: Option<String>,
            expires_in: Option<u64>,
        }
        const DAY: u64 = 24 * 3600;
        let answer: Answer = serde_json::from_slice(body).ok()?;
        let lifetime = answer.expires_in.unwrap_or(60).min(DAY);
        let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty())?;
        // refreshed early: half a minute, or half of a short life
        let early = (lifetime / 2).min(30);
        let until = Instant::now() + Duration::from_secs(lifetime.saturating_sub(early).max(1));
        Some(Token { authorization: Authorization::new(format!("Bearer {token}")), until })
    }
}

/// The URL of a token realm, which may be relative to the URL that was asked.
///
/// # Errors
/// When it is none.
pub(super) fn realm_url(asked: &Url, realm: &str) -> Result<Url, Error> {
    asked.join(realm).map_err(|error| {
        Error::new(ErrorKind::Invalid, "its token realm is no URL").at(asked).caused_by(error)
    })
}
