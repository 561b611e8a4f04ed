//! Coordinates the sign-in to proxies. The first request with an account is sent alone, and if the
//! proxy refuses the account, that is final for all workers. If each worker tried the account, the
//! proxy might lock it.

use crate::error::{ErrorKind, HttpError};
use crate::ledger::rounded;
use crate::proxy::ProxyUrl;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tracing::debug;
use url::Url;

/// The sign-ins of a run, by proxy, user and password.
#[derive(Default)]
pub(super) struct ProxySignIns(Mutex<HashMap<String, Arc<ProxySignIn>>>);

impl ProxySignIns {
    pub(super) fn for_proxy(&self, proxy: &ProxyUrl) -> Arc<ProxySignIn> {
        let account = proxy.account.as_ref();
        let (user, password) = account.map_or(("", ""), |account| {
            (account.user.as_str(), account.password.as_str())
        });
        let key = format!("{} {user}:{password}", proxy.url);
        locked(&self.0).entry(key).or_default().clone()
    }
}

/// The sign-in to one proxy with one account.
#[derive(Default)]
pub(super) struct ProxySignIn {
    /// Whether the proxy has accepted a request with the account.
    proven: AtomicBool,
    /// Locked by the request that tries the account.
    first: Arc<tokio::sync::Mutex<()>>,
    /// The error of the refused account.
    refused: Mutex<Option<HttpError>>,
    /// The number of turns that ended without a response of the proxy, and the error of the last
    /// one.
    unanswered: Mutex<(u64, Option<HttpError>)>,
}

/// The longest wait for the request that tries the account.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// The turn to try the account, held until the proxy has answered.
pub(super) type ProxySignInTurn = tokio::sync::OwnedMutexGuard<()>;

impl ProxySignIn {
    /// Waits until the proxy has accepted the account, or returns the turn to try it.
    ///
    /// Fails if the proxy has refused the account. If the proxy does not answer the request that
    /// has the turn, all requests that wait for the turn fail with the same error: otherwise each
    /// of them would wait for the same timeout, one after another.
    pub(super) async fn enter(
        &self,
        proxy: &ProxyUrl,
        url: &Url,
    ) -> Result<Option<ProxySignInTurn>, HttpError> {
        let mut turn = None;
        if proxy.account.is_some() && !self.proven.load(Ordering::Acquire) {
            let began = Instant::now();
            let before = locked(&self.unanswered).0;
            // The request with the turn may be for a host that does not answer, so the waiting
            // requests continue without a turn after a timeout.
            turn = tokio::time::timeout(TURN_TIMEOUT, self.first.clone().lock_owned())
                .await
                .ok();
            debug!(
                proxy = %proxy.address(),
                waited = ?rounded(began.elapsed()),
                "waited for the sign-in to the proxy"
            );
            let (after, last_error) = locked(&self.unanswered).clone();
            if after != before
                && let Some(error) = last_error
            {
                return Err(error.at(url));
            }
        }
        // checked after the wait: the request with the turn may have been refused meanwhile
        if let Some(error) = locked(&self.refused).clone() {
            return Err(error);
        }
        // a proven account needs no turns any more
        Ok(turn.filter(|_| !self.proven.load(Ordering::Acquire)))
    }

    /// Records the result of a request. `had_turn` says whether it had the turn.
    pub(super) fn learn(&self, proxy: &ProxyUrl, had_turn: bool, result: Result<(), &HttpError>) {
        let Err(error) = result else {
            self.proven.store(true, Ordering::Release);
            return;
        };
        match error.kind {
            // the first refusal is kept, so that all items report the same cause
            ErrorKind::Proxy(407) if proxy.account.is_some() => {
                locked(&self.refused).get_or_insert_with(|| error.clone());
            }
            // without an account, nothing can be locked
            ErrorKind::Proxy(407) => {}
            // Any other refusal is about the target, so the account was accepted.
            ErrorKind::Proxy(_) => self.proven.store(true, Ordering::Release),
            ErrorKind::Network if had_turn => {
                let mut unanswered = locked(&self.unanswered);
                *unanswered = (unanswered.0 + 1, Some(error.clone()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> (ProxySignIn, ProxyUrl, Url, Url) {
        let url = |text: &str| Url::parse(text).unwrap();
        let proxy = ProxyUrl::parse("u:pw@p:1", "HTTPS_PROXY").unwrap();
        (
            ProxySignIn::default(),
            proxy,
            url("https://a.test/"),
            url("https://b.test/"),
        )
    }

    #[tokio::test]
    async fn requests_that_waited_for_an_unanswered_turn_fail_with_its_error() {
        let (sign_in, proxy, a, b) = setting();
        let turn = sign_in.enter(&proxy, &a).await.unwrap();
        let waiting = sign_in.enter(&proxy, &b);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let error = HttpError::new(ErrorKind::Network, "cannot connect to the proxy").at(&a);
        sign_in.learn(&proxy, true, Err(&error));
        drop(turn);
        let error = waiting.await.unwrap_err();
        assert!(
            error.is_transient()
                && error.to_string() == "https://b.test/: cannot connect to the proxy",
            "{error}"
        );
        assert!(
            sign_in.enter(&proxy, &b).await.unwrap().is_some(),
            "later requests try again"
        );
    }

    #[tokio::test]
    async fn a_refused_account_is_final_and_a_refused_host_shows_that_the_account_is_valid() {
        let (sign_in, proxy, _, b) = setting();
        sign_in.learn(
            &proxy,
            true,
            Err(&HttpError::new(ErrorKind::Proxy(403), "not allowed")),
        );
        assert!(
            sign_in.enter(&proxy, &b).await.unwrap().is_none(),
            "requests need no turn any more"
        );
        sign_in.learn(
            &proxy,
            false,
            Err(&HttpError::new(ErrorKind::Proxy(407), "refused")),
        );
        assert_eq!(
            sign_in.enter(&proxy, &b).await.unwrap_err().to_string(),
            "refused"
        );
    }
}
