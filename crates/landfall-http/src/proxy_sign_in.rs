//! Signs in to a proxy: the first request with an account goes alone, and a refusal of the account
//! is final for all workers, so that the account does not get locked.

use super::error::{ErrorKind, HttpError};
use super::proxy::ProxyUrl;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use url::Url;

/// The sign-ins to all proxies.
#[derive(Default)]
pub(super) struct ProxySignIns(Mutex<HashMap<String, Arc<ProxySignIn>>>);

impl ProxySignIns {
    /// The sign-in to this proxy with its account.
    pub(super) fn of(&self, proxy: &ProxyUrl) -> Arc<ProxySignIn> {
        let user = proxy
            .account
            .as_ref()
            .map_or("", |account| account.user.as_str());
        let key = format!("{} {user}", proxy.url);
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        all.entry(key).or_default().clone()
    }
}

/// The sign-in to one proxy with one account.
#[derive(Default)]
pub(super) struct ProxySignIn {
    /// The proxy took a request.
    proven: AtomicBool,
    first: Arc<tokio::sync::Mutex<()>>,
    refused: Mutex<Option<HttpError>>,
    /// How many turns ended without an answer, and the error of the last one.
    missed: Mutex<(u64, Option<HttpError>)>,
}

/// How long a request waits for the one that tries the account.
const TURN: Duration = Duration::from_secs(5);

/// The turn to try the account, held until the proxy has answered.
pub(super) type Turn = tokio::sync::OwnedMutexGuard<()>;

impl ProxySignIn {
    /// Waits until the proxy has taken a request, or gives the caller the turn to try the account.
    /// Behind a request whose host does not answer nobody waits for longer than [`TURN`].
    ///
    /// # Errors
    /// The proxy's refusal, where it has refused the account. Where the proxy did not answer the
    /// request that had the turn, all that waited meanwhile get that error: else each would wait
    /// for it again.
    pub(super) async fn enter(
        &self,
        proxy: &ProxyUrl,
        url: &Url,
    ) -> Result<Option<Turn>, HttpError> {
        let turn = match proxy.account.is_some() && !self.proven.load(Ordering::Acquire) {
            true => {
                let (before, _) = self.missed();
                let turn = tokio::time::timeout(TURN, self.first.clone().lock_owned())
                    .await
                    .ok();
                let (after, error) = self.missed();
                if let Some(error) = error.filter(|_| after != before) {
                    return Err(error.at(url));
                }
                turn
            }
            false => None,
        };
        match self.refused.lock().ok().and_then(|refused| refused.clone()) {
            Some(error) => Err(error),
            None => Ok(turn.filter(|_| !self.proven.load(Ordering::Acquire))),
        }
    }

    /// Learns from the result of a request. `turn` says that the request had the turn.
    pub(super) fn learn(&self, proxy: &ProxyUrl, turn: bool, result: Result<(), &HttpError>) {
        match result.map_err(|error| (error.kind, error)) {
            Err((ErrorKind::Proxy(407), error)) if proxy.account.is_some() => {
                if let Ok(mut refused) = self.refused.lock() {
                    refused.get_or_insert_with(|| error.clone());
                }
            }
            Err((ErrorKind::Proxy(407), _)) => {}
            // any other refusal is about the target: the account is good
            Ok(()) | Err((ErrorKind::Proxy(_), _)) => self.proven.store(true, Ordering::Release),
            Err((ErrorKind::Network, error)) if turn => {
                if let Ok(mut missed) = self.missed.lock() {
                    *missed = (missed.0 + 1, Some(error.clone()));
                }
            }
            Err(_) => {}
        }
    }

    fn missed(&self) -> (u64, Option<HttpError>) {
        self.missed
            .lock()
            .map(|missed| missed.clone())
            .unwrap_or_default()
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
    async fn who_waited_for_no_answer_need_not_try() {
        let (sign_in, proxy, a, b) = setting();
        let turn = sign_in.enter(&proxy, &a).await.unwrap();
        let waiting = sign_in.enter(&proxy, &b);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let error = HttpError::new(ErrorKind::Network, "cannot connect to the proxy").at(&a);
        sign_in.learn(&proxy, true, Err(&error));
        drop(turn);
        let told = waiting.await.unwrap_err();
        assert!(
            told.is_transient()
                && told.to_string() == "https://b.test/: cannot connect to the proxy",
            "{told}"
        );
        assert!(
            sign_in.enter(&proxy, &b).await.unwrap().is_some(),
            "later ones try again"
        );
    }

    #[tokio::test]
    async fn a_refusal_of_the_account_is_final_and_one_of_a_host_proves_it() {
        let (sign_in, proxy, _, b) = setting();
        sign_in.learn(
            &proxy,
            true,
            Err(&HttpError::new(ErrorKind::Proxy(403), "not allowed")),
        );
        assert!(
            sign_in.enter(&proxy, &b).await.unwrap().is_none(),
            "no turns any more"
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
