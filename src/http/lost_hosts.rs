//! Gives up hosts that do not answer, for the rest of the run: else every item would cost their timeouts again.

use super::error::{Error, ErrorKind};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use url::Url;

/// How the hosts of a run answer, by host and port.
#[derive(Default)]
pub(super) struct LostHosts(Mutex<HashMap<String, Host>>);

#[derive(Default)]
struct Host {
    /// It has answered in this run.
    answered: bool,
    /// Rounds of requests in a row that got no answer by all their attempts.
    rounds: u32,
    /// When the last round was counted.
    counted: Option<Instant>,
    given_up: Option<Error>,
}

impl LostHosts {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host answered, whatever it said.
    pub(super) fn answered(&self, host: &str) {
        let mut hosts = self.hosts();
        match hosts.get_mut(host) {
            Some(known) => *known = Host { answered: true, ..Host::default() },
            None => drop(hosts.insert(host.into(), Host { answered: true, ..Host::default() })),
        }
    }

    /// The error that a request to this host gets without being sent, where the host is given up.
    pub(super) fn check(&self, host: &str) -> Option<Error> {
        self.hosts().get(host)?.given_up.clone()
    }

    /// Counts a request that began at `began` and got no answer by all its attempts. Requests that were under way
    /// together count once. Returns the error for all others where that gives the host up: at once, or after `rounds` where
    /// it has answered before, or hangs up, which may be about this request alone.
    pub(super) fn lost(&self, host: &str, began: Instant, rounds: u32, error: &Error) -> Option<Error> {
        let mut hosts = self.hosts();
        let known = hosts.entry(host.into()).or_default();
        if known.counted.is_none_or(|counted| counted <= began) {
            known.rounds += 1;
            known.counted = Some(Instant::now());
        }
        let needed = if known.answered || error.is_hang_up() { rounds } else { 1 };
        if known.given_up.is_none() && known.rounds >= needed {
            known.given_up = Some(given_up(host, error));
        }
        known.given_up.clone()
    }
}

/// The error for everything that a host was to be asked that does not answer; it is the same for all.
fn given_up(host: &str, error: &Error) -> Error {
    let url = error.url().and_then(|url| Url::parse(url).ok());
    let plain = url.is_some_and(|url| url.scheme() == "http");
    let bare = host.strip_suffix(":443").unwrap_or(host);
    let target = if plain { format!("http://{host}/") } else { bare.to_owned() };
    let words =
        format!("given up for this run: {}; `landfall doctor {target}` says what is wrong", error.message());
    Error::new(ErrorKind::GivenUp, words).about(bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn refused() -> Error {
        let url = Url::parse("https://r.test/v2/a/manifests/1?x").unwrap();
        Error::new(ErrorKind::Network, "cannot connect").at(&url)
    }

    #[tokio::test]
    async fn a_host_that_hangs_up_is_not_given_up_for_one_request() {
        let hosts = LostHosts::default();
        let lost = || hosts.lost("r.test:443", Instant::now(), 3, &refused().hung_up(true));
        assert!(lost().is_none() && lost().is_none());
        assert_eq!(lost().unwrap().kind, ErrorKind::GivenUp);
    }

    #[tokio::test]
    async fn a_host_that_never_answered_is_given_up_at_once_and_another_after_some_rounds() {
        let hosts = LostHosts::default();
        let (dead, alive) = ("r.test:443", "s.test:443");
        assert!(hosts.check(dead).is_none());
        let error = hosts.lost(dead, Instant::now(), 3, &refused()).unwrap();
        let told =
            "r.test: given up for this run: cannot connect; `landfall doctor r.test` says what is wrong";
        assert_eq!((error.to_string().as_str(), error.kind), (told, ErrorKind::GivenUp));
        assert_eq!(hosts.check(dead).unwrap().to_string(), told);

        hosts.answered(alive);
        for _ in 0..2 {
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(2)).await;
            // twelve were under way together
            assert!((0..12).all(|_| hosts.lost(alive, began, 3, &refused()).is_none()));
        }
        assert!(hosts.check(alive).is_none());
        assert!(hosts.lost(alive, Instant::now(), 3, &refused()).is_some());
        // one that was under way is answered after all
        hosts.answered(alive);
        assert!(hosts.check(alive).is_none());
        assert!(hosts.lost(alive, Instant::now(), 3, &refused()).is_none(), "and it counts anew");
    }
}
