//! Gives up hosts that only fail, for the rest of the run: else every item would cost their
//! timeouts and attempts again.

use super::error::{ErrorKind, HttpError};
use landfall_model::Limits;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// How the hosts of a run answer, by host and port.
#[derive(Default)]
pub(super) struct LostHosts(Mutex<HashMap<String, Host>>);

#[derive(Default)]
struct Host {
    /// It has answered in this run, and not with an error of its own.
    answered: bool,
    /// Rounds of requests in a row that failed at all their attempts.
    rounds: u32,
    /// When the last round was counted.
    counted: Option<Instant>,
    /// When the first attempt failed since the host answered last, and how many have.
    failing: Option<(Instant, u32)>,
    /// Since when it has put off every request.
    put_off: Option<Instant>,
    given_up: Option<HttpError>,
}

impl LostHosts {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host answered, and not with an error of its own.
    pub(super) fn answered(&self, host: &str) {
        let mut hosts = self.hosts();
        match hosts.get_mut(host) {
            Some(known) => {
                *known = Host {
                    answered: true,
                    ..Host::default()
                }
            }
            None => drop(hosts.insert(
                host.into(),
                Host {
                    answered: true,
                    ..Host::default()
                },
            )),
        }
    }

    /// The host put off a request: it works, so what failed before does not count. Returns the
    /// error for this and all other requests to the host if it has done nothing else for longer
    /// than a request may wait ([`Limits::max_wait_secs`]); `error` makes it.
    pub(super) fn put_off(
        &self,
        host: &str,
        limits: &Limits,
        error: impl FnOnce() -> HttpError,
    ) -> Option<HttpError> {
        let mut hosts = self.hosts();
        let known = hosts.entry(host.to_owned()).or_default();
        let since = *known.put_off.get_or_insert_with(Instant::now);
        (known.rounds, known.counted, known.failing) = (0, None, None);
        if known.given_up.is_none() && since.elapsed() > Duration::from_secs(limits.max_wait_secs) {
            known.given_up = Some(error());
        }
        known.given_up.clone()
    }

    /// The error that a request to this host gets without being sent, where the host is given up.
    pub(super) fn check(&self, host: &str) -> Option<HttpError> {
        self.hosts().get(host)?.given_up.clone()
    }

    /// Counts a failed attempt at a request that began at `began`; `is_last` says that it was its
    /// last one. Returns the error for this and all other requests to the host if that gives it up:
    ///
    /// - if it did not answer any attempt at its first request, and neither hung up nor answered
    ///   with an error;
    /// - after several rounds of requests that failed at all their attempts, where requests that
    ///   were under way together count once ([`Limits::lost_rounds`]);
    /// - if it has done nothing but fail for some time ([`Limits::lost_after`]), and at as many
    ///   attempts as those rounds have.
    pub(super) fn failed(
        &self,
        host: &str,
        began: Instant,
        is_last: bool,
        limits: &Limits,
        error: &HttpError,
    ) -> Option<HttpError> {
        let mut hosts = self.hosts();
        let known = hosts.entry(host.to_owned()).or_default();
        let (since, failed) = known.failing.get_or_insert_with(|| (Instant::now(), 0));
        *failed += 1;
        let is_failing =
            since.elapsed() >= limits.lost_after && *failed >= limits.attempts * limits.lost_rounds;
        if is_last && known.counted.is_none_or(|counted| counted <= began) {
            known.rounds += 1;
            known.counted = Some(Instant::now());
        }
        let may_be_the_request = known.answered || error.is_hang_up() || error.status.is_some();
        let rounds = if may_be_the_request {
            limits.lost_rounds
        } else {
            1
        };
        if known.given_up.is_none() && (known.rounds >= rounds || is_failing) {
            known.given_up = Some(given_up(host, error));
        }
        known.given_up.clone()
    }
}

/// The error for everything that a host was to be asked that does not answer; it is the same for
/// all.
fn given_up(host: &str, error: &HttpError) -> HttpError {
    let url = error.url().and_then(|url| Url::parse(url).ok());
    let plain = url.is_some_and(|url| url.scheme() == "http");
    let bare = host.strip_suffix(":443").unwrap_or(host);
    let target = if plain {
        format!("http://{host}/")
    } else {
        bare.to_owned()
    };
    let words = format!(
        "given up for this run: {}; `landfall doctor {target}` says what is wrong",
        error.message()
    );
    HttpError::new(ErrorKind::GivenUp, words).about(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> HttpError {
        let url = Url::parse("https://r.test/v2/a/manifests/1?x").unwrap();
        HttpError::new(ErrorKind::Network, "cannot connect").at(&url)
    }

    const ROUNDS: Limits = Limits {
        lost_rounds: 3,
        ..LIMITS
    };
    const LIMITS: Limits = Limits::DEFAULT;

    #[tokio::test]
    async fn a_host_that_hangs_up_or_has_errors_is_not_given_up_for_one_request() {
        let error = HttpError::new(ErrorKind::Status(502), "it answered 502 Bad Gateway");
        let error = error.at(&Url::parse("https://r.test/v2/").unwrap());
        for failure in [refused().hung_up(true), error] {
            let hosts = LostHosts::default();
            let lost = || hosts.failed("r.test:443", Instant::now(), true, &ROUNDS, &failure);
            assert!(lost().is_none() && lost().is_none());
            assert_eq!(lost().unwrap().kind, ErrorKind::GivenUp);
        }
    }

    #[tokio::test]
    async fn a_host_that_never_answered_is_given_up_at_once_and_another_after_some_rounds() {
        let hosts = LostHosts::default();
        let (dead, alive) = ("r.test:443", "s.test:443");
        assert!(hosts.check(dead).is_none());
        let failed = |host, began, is_last| hosts.failed(host, began, is_last, &ROUNDS, &refused());
        assert!(
            failed(dead, Instant::now(), false).is_none(),
            "it may answer the next attempt"
        );
        let error = failed(dead, Instant::now(), true).unwrap();
        let told = "r.test: given up for this run: cannot connect; `landfall doctor r.test` says what is wrong";
        assert_eq!(
            (error.to_string().as_str(), error.kind),
            (told, ErrorKind::GivenUp)
        );
        assert_eq!(hosts.check(dead).unwrap().to_string(), told);

        hosts.answered(alive);
        for _ in 0..2 {
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(2)).await;
            // twelve were under way together
            assert!((0..12).all(|_| failed(alive, began, true).is_none()));
        }
        assert!(hosts.check(alive).is_none());
        assert!(failed(alive, Instant::now(), true).is_some());
        // one that was under way is answered after all
        hosts.answered(alive);
        assert!(hosts.check(alive).is_none());
        assert!(
            failed(alive, Instant::now(), true).is_none(),
            "and it counts anew"
        );
    }

    #[tokio::test]
    async fn a_host_that_puts_off_everything_is_given_up_when_no_request_may_wait_any_longer() {
        let hosts = LostHosts::default();
        let put_off = |max_wait_secs| {
            let limits = Limits {
                max_wait_secs,
                ..LIMITS
            };
            hosts.put_off("s.test:443", &limits, || {
                HttpError::new(ErrorKind::GivenUp, "it puts off")
            })
        };
        assert!(put_off(60).is_none());
        tokio::time::sleep(Duration::from_millis(5)).await;
        hosts.answered("s.test:443");
        assert!(put_off(60).is_none());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(put_off(0).unwrap().kind, ErrorKind::GivenUp);
        assert!(hosts.check("s.test:443").is_some());
    }

    #[tokio::test]
    async fn a_host_that_only_fails_for_long_is_given_up_between_attempts() {
        let hosts = LostHosts::default();
        let began = Instant::now();
        let failed = |lost_after| {
            let limits = Limits {
                lost_after,
                attempts: 1,
                lost_rounds: 2,
                ..LIMITS
            };
            hosts.failed("s.test:443", began, false, &limits, &refused())
        };
        hosts.answered("s.test:443");
        assert!(failed(LIMITS.lost_after).is_none());
        assert!(failed(LIMITS.lost_after).is_none(), "not for long enough");
        hosts.answered("s.test:443");
        assert!(failed(Duration::ZERO).is_none(), "it counts anew");
        assert_eq!(failed(Duration::ZERO).unwrap().kind, ErrorKind::GivenUp);
    }
}
