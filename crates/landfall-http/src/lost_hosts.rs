//! Stops using hosts that only fail, for the rest of the run. Otherwise every item would go through
//! their timeouts and attempts again.

use super::error::{ErrorKind, HttpError, shown_host};
use landfall_model::{Limits, locked};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// The record of failures of each host in a run, by `host:port`.
#[derive(Default)]
pub(super) struct LostHosts(Mutex<HashMap<String, HostRecord>>);

#[derive(Default)]
struct HostRecord {
    /// Whether the host has answered in this run, or asked a request to wait. A transient error is
    /// not an answer.
    answered: bool,
    /// The number of rounds in a row whose requests failed at all attempts.
    rounds: u32,
    /// The time at which the last round was counted. Requests that began earlier belong to it.
    counted: Option<Instant>,
    /// The first failed attempt since it last answered or asked a request to wait, and how many
    /// there were.
    failing: Option<(Instant, u32)>,
    /// When the host first asked a request to wait after its last answer.
    postponed_since: Option<Instant>,
    /// Whether requests are not repeated: three rounds failed, but perhaps each because of its
    /// request alone. Ends with the next answer.
    doubtful: bool,
    /// The error for all further requests, once the host is given up.
    given_up: Option<HttpError>,
}

impl LostHosts {
    /// Records that the host answered, other than with a transient error or a request to wait. Its
    /// earlier failures do not count any more.
    pub(super) fn answered(&self, host: &str) {
        let record = HostRecord {
            answered: true,
            ..HostRecord::default()
        };
        locked(&self.0).insert(host.to_owned(), record);
    }

    /// Records that the host asked a request to wait. Such a host works, so its earlier failures do
    /// not count any more.
    ///
    /// The host is given up if it first asked a request to wait more than
    /// [`Limits::max_wait_secs`] ago and has answered nothing else since. In that case, returns the
    /// error for this and all further requests. `error` creates it.
    pub(super) fn postpone(
        &self,
        host: &str,
        limits: &Limits,
        error: impl FnOnce() -> HttpError,
    ) -> Option<HttpError> {
        let mut hosts = locked(&self.0);
        let record = hosts.entry(host.to_owned()).or_default();
        let since = *record.postponed_since.get_or_insert_with(Instant::now);
        record.answered = true;
        record.rounds = 0;
        record.counted = None;
        record.failing = None;
        record.doubtful = false;
        if record.given_up.is_none() && since.elapsed() > Duration::from_secs(limits.max_wait_secs)
        {
            record.given_up = Some(error());
        }
        record.given_up.clone()
    }

    /// Returns the error for all requests to this host if it is given up.
    pub(super) fn check(&self, host: &str) -> Option<HttpError> {
        locked(&self.0).get(host)?.given_up.clone()
    }

    /// Whether failed requests to this host are not repeated.
    pub(super) fn is_doubtful(&self, host: &str) -> bool {
        let hosts = locked(&self.0);
        hosts.get(host).is_some_and(|record| record.doubtful)
    }

    /// Counts a failed attempt at a request that began at `began`. `is_last` says whether it was
    /// the last attempt. Returns the error for this and all further requests if the host is given
    /// up:
    ///
    /// - after one request that failed at all attempts, if the host has never answered and this
    ///   error is neither a hang-up nor a status;
    /// - after [`Limits::lost_rounds`] rounds of requests that failed at all attempts; requests
    ///   that were under way together are one round;
    /// - if all its requests have failed for [`Limits::lost_after`], with as many failed attempts
    ///   as those rounds have.
    ///
    /// A host that hangs up or answers with a status is never given up, because the items of these
    /// requests may be the cause, and others may succeed. It [becomes
    /// doubtful](LostHosts::is_doubtful) instead.
    pub(super) fn failed(
        &self,
        host: &str,
        began: Instant,
        is_last: bool,
        limits: &Limits,
        error: &HttpError,
    ) -> Option<HttpError> {
        let mut hosts = locked(&self.0);
        let record = hosts.entry(host.to_owned()).or_default();
        // Time alone is not enough: a single long timeout may exceed `lost_after`.
        let (first, attempts) = record.failing.get_or_insert_with(|| (Instant::now(), 0));
        *attempts += 1;
        let only_fails = first.elapsed() >= limits.lost_after
            && *attempts >= limits.attempts * limits.lost_rounds;
        // requests that began before the last round ended failed together with it
        if is_last && record.counted.is_none_or(|counted| counted <= began) {
            record.rounds += 1;
            record.counted = Some(Instant::now());
        }
        // One bad request must not fail all items of a host that works otherwise.
        let may_be_the_request = error.is_hang_up() || error.status.is_some();
        let rounds = if record.answered || may_be_the_request {
            limits.lost_rounds
        } else {
            1
        };
        let is_lost = record.rounds >= rounds || only_fails;
        record.doubtful |= is_lost;
        // the first error is kept, so that all items report the same cause
        if is_lost && !may_be_the_request && record.given_up.is_none() {
            record.given_up = Some(given_up_error(host, error));
        }
        record.given_up.clone()
    }
}

/// Returns the error for all further requests to a host that only fails. It has the same text for
/// all items, so that reports can group them.
fn given_up_error(host: &str, error: &HttpError) -> HttpError {
    // `doctor` needs the scheme for plain http, and by default inspects port 443 with TLS
    let url = error.url().and_then(|url| Url::parse(url).ok());
    let is_plain_http = url.is_some_and(|url| url.scheme() == "http");
    let bare = shown_host(host);
    let target = if is_plain_http {
        format!("http://{host}/")
    } else {
        bare.to_owned()
    };
    let words = format!(
        "skipped for the rest of this run: {}; `landfall doctor {target}` diagnoses it",
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
    async fn a_host_that_hangs_up_or_answers_502_is_doubtful_after_three_rounds() {
        let error = HttpError::new(ErrorKind::Status(502), "it answered 502 Bad Gateway");
        let error = error.at(&Url::parse("https://r.test/v2/").unwrap());
        for failure in [refused().hung_up(true), error] {
            let hosts = LostHosts::default();
            let host = "r.test:443";
            let lost = || hosts.failed(host, Instant::now(), true, &ROUNDS, &failure);
            assert!(lost().is_none() && lost().is_none());
            assert!(!hosts.is_doubtful(host));
            // the items of these requests may be the cause, so others are still requested
            assert!(lost().is_none());
            assert!(hosts.is_doubtful(host) && hosts.check(host).is_none());
            hosts.answered(host);
            assert!(!hosts.is_doubtful(host));
        }
    }

    #[tokio::test]
    async fn a_silent_host_is_given_up_after_one_round_and_an_answering_host_after_three() {
        let hosts = LostHosts::default();
        let dead = "r.test:443";
        let alive = "s.test:443";
        assert!(hosts.check(dead).is_none());
        let failed = |host, began, is_last| hosts.failed(host, began, is_last, &ROUNDS, &refused());
        assert!(
            failed(dead, Instant::now(), false).is_none(),
            "it may answer the next attempt"
        );
        let error = failed(dead, Instant::now(), true).unwrap();
        let expected = "r.test: skipped for the rest of this run: cannot connect; \
                        `landfall doctor r.test` diagnoses it";
        assert_eq!(
            (error.to_string().as_str(), error.kind),
            (expected, ErrorKind::GivenUp)
        );
        assert_eq!(hosts.check(dead).unwrap().to_string(), expected);

        hosts.answered(alive);
        for _ in 0..2 {
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(2)).await;
            // twelve requests were under way together
            assert!((0..12).all(|_| failed(alive, began, true).is_none()));
        }
        assert!(hosts.check(alive).is_none());
        assert!(failed(alive, Instant::now(), true).is_some());
        // one of these requests is answered after all
        hosts.answered(alive);
        assert!(hosts.check(alive).is_none());
        assert!(
            failed(alive, Instant::now(), true).is_none(),
            "and the count starts again"
        );
    }

    #[tokio::test]
    async fn a_host_that_only_postpones_is_given_up_after_the_longest_allowed_wait() {
        let hosts = LostHosts::default();
        let postpone = |max_wait_secs| {
            let limits = Limits {
                max_wait_secs,
                ..LIMITS
            };
            hosts.postpone("s.test:443", &limits, || {
                HttpError::new(ErrorKind::GivenUp, "it postpones")
            })
        };
        assert!(postpone(60).is_none());
        tokio::time::sleep(Duration::from_millis(5)).await;
        hosts.answered("s.test:443");
        assert!(postpone(60).is_none());
        let other = hosts.postpone("t.test:443", &LIMITS, refused);
        assert!(other.is_none());
        let failed = hosts.failed("t.test:443", Instant::now(), true, &ROUNDS, &refused());
        assert!(
            failed.is_none(),
            "it has answered, so one request proves nothing"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(postpone(0).unwrap().kind, ErrorKind::GivenUp);
        assert!(hosts.check("s.test:443").is_some());
    }

    #[tokio::test]
    async fn a_host_that_fails_for_long_is_given_up_before_the_last_attempt() {
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
        assert!(failed(Duration::ZERO).is_none(), "the count starts again");
        assert_eq!(failed(Duration::ZERO).unwrap().kind, ErrorKind::GivenUp);
    }
}
