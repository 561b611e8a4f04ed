//! One door a proxy: the first request with an account goes through alone, and a refusal of the account
//! is final for all workers, so that it does not get locked.

use super::error::{Error, ErrorKind, shown_url};
use super::proxy::ProxyUrl;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use url::Url;

/// The doors of all proxies.
#[derive(Default)]
pub(super) struct Doors(Mutex<HashMap<String, Arc<Door>>>);

impl Doors {
    /// The door of this proxy and its account.
    pub(super) fn of(&self, proxy: &ProxyUrl) -> Arc<Door> {
        let user = proxy.account.as_ref().map_or("", |account| account.user.as_str());
        let key = format!("{} {user}", proxy.url);
        let mut doors = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        doors.entry(key).or_default().clone()
    }
}

/// The door of one proxy.
#[derive(Default)]
pub(super) struct Door {
    /// The proxy took a request.
    proven: AtomicBool,
    first: Arc<tokio::sync::Mutex<()>>,
    refused: Mutex<Option<Error>>,
    /// How many turns ended without an answer, and how the last one did.
    missed: Mutex<(u64, String)>,
}

/// The turn to try the account, held until the proxy has answered.
pub(super) type Turn = tokio::sync::OwnedMutexGuard<()>;

impl Door {
    /// Waits until the proxy has taken a request, or gives the turn to try it.
    ///
    /// # Errors
    /// The proxy's refusal, where it has refused the account. Where it did not answer whoever had the turn, that
    /// is an answer for all who waited meanwhile: else they would find out one after the other.
    pub(super) async fn enter(&self, proxy: &ProxyUrl, url: &Url) -> Result<Option<Turn>, Error> {
        let turn = match proxy.account.is_some() && !self.proven.load(Ordering::Acquire) {
            true => {
                let (before, _) = self.missed();
                let turn = self.first.clone().lock_owned().await;
                let (after, words) = self.missed();
                if after != before {
                    return Err(Error::new(ErrorKind::Network, format!("{}: {words}", shown_url(url))));
                }
                Some(turn)
            }
            false => None,
        };
        match self.refused.lock().ok().and_then(|refused| refused.clone()) {
            Some(error) => Err(error),
            None => Ok(turn.filter(|_| !self.proven.load(Ordering::Acquire))),
        }
    }

    /// Takes in what became of a request to `url`. `turn` says that it had the turn.
    pub(super) fn learn(&self, proxy: &ProxyUrl, url: &Url, turn: bool, result: Result<(), &Error>) {
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
                let words = error.message.strip_prefix(&shown_url(url)).unwrap_or(&error.message);
                if let Ok(mut missed) = self.missed.lock() {
                    *missed = (missed.0 + 1, words.trim_start_matches([':', ' ']).to_owned());
                }
            }
            Err(_) => {}
        }
    }

    fn missed(&self) -> (u64, String) {
        self.missed.lock().map(|missed| missed.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> (Door, ProxyUrl, Url, Url) {
        let url = |text: &str| Url::parse(text).unwrap();
        let proxy = ProxyUrl::parse("u:pw@p:1", "HTTPS_PROXY").unwrap();
        (Door::default(), proxy, url("https://a.test/"), url("https://b.test/"))
    }

    #[tokio::test]
    async fn who_waited_for_no_answer_need_not_try() {
        let (door, proxy, a, b) = setting();
        let turn = door.enter(&proxy, &a).await.unwrap();
        let waiting = door.enter(&proxy, &b);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let error = Error::new(ErrorKind::Network, "https://a.test/: cannot connect to the proxy");
        door.learn(&proxy, &a, true, Err(&error));
        drop(turn);
        let told = waiting.await.unwrap_err();
        assert!(
            told.is_transient() && told.message == "https://b.test/: cannot connect to the proxy",
            "{told}"
        );
        assert!(door.enter(&proxy, &b).await.unwrap().is_some(), "later ones try again");
    }

    #[tokio::test]
    async fn a_refusal_of_the_account_is_final_and_one_of_a_host_proves_it() {
        let (door, proxy, a, b) = setting();
        door.learn(&proxy, &a, true, Err(&Error::new(ErrorKind::Proxy(403), "not allowed")));
        assert!(door.enter(&proxy, &b).await.unwrap().is_none(), "no turns any more");
        door.learn(&proxy, &a, false, Err(&Error::new(ErrorKind::Proxy(407), "refused")));
        assert_eq!(door.enter(&proxy, &b).await.unwrap_err().message, "refused");
    }
}
