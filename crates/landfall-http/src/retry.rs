//! The policy of all loops that retry: when to retry, and after which pause.

use crate::error::{ErrorKind, HttpError, shown_host};
use landfall_model::{Limits, locked};
use reqwest::StatusCode;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The number of attempts, and the pauses between them.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

/// Counts the failed attempts at one request, body or part.
#[derive(Debug, Clone)]
pub struct Attempts {
    policy: RetryPolicy,
    /// The number of failed attempts since the last [`Attempts::reset`].
    pub(super) failed: u32,
}

impl RetryPolicy {
    /// Returns the policy of a run with these limits.
    pub fn new(limits: &Limits) -> RetryPolicy {
        RetryPolicy {
            attempts: limits.attempts,
            first_pause: limits.backoff,
            longest_pause: limits.backoff_most,
        }
    }

    /// Changes the policy to a single attempt: nothing is retried.
    #[must_use]
    pub(crate) fn single_attempt(self) -> RetryPolicy {
        RetryPolicy {
            attempts: 1,
            ..self
        }
    }

    /// Returns the pause after attempt `attempt`, counted from 1. Pauses double from the first up
    /// to the longest. Each is then changed at random by up to half its length, so that workers do
    /// not retry together.
    pub fn pause(&self, attempt: u32) -> Duration {
        // the exponent is limited so that the number stays finite
        let base =
            self.first_pause.as_secs_f64() * 2f64.powi(attempt.saturating_sub(1).min(20) as i32);
        Duration::from_secs_f64(
            base.min(self.longest_pause.as_secs_f64()) * (0.5 + fastrand::f64()),
        )
    }

    /// Returns a counter for the attempts at one request, body or part.
    pub fn start(self) -> Attempts {
        Attempts {
            policy: self,
            failed: 0,
        }
    }
}

impl Attempts {
    /// Counts a failed attempt. Returns the pause before the next one, or `None` if none is left.
    pub fn fail(&mut self) -> Option<Duration> {
        self.failed += 1;
        (self.failed < self.policy.attempts).then(|| self.policy.pause(self.failed))
    }

    /// Counts a failed attempt and sleeps until the next one. Returns `false` at once if none is
    /// left.
    pub async fn wait_for_next(&mut self) -> bool {
        let Some(pause) = self.fail() else {
            return false;
        };
        tokio::time::sleep(pause).await;
        true
    }

    /// Restarts the count, because the last attempt made progress.
    pub fn reset(&mut self) {
        self.failed = 0;
    }
}

/// Whether a request with this response status may succeed if it is retried.
pub(super) fn is_transient(status: u16) -> bool {
    // 520 to 524 are Cloudflare's statuses for an origin that it cannot reach
    matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 520..=524)
}

/// Whether a response with this status counts as a failure of its host. A host that answers "too
/// many requests" works.
pub(super) fn is_failing(status: StatusCode) -> bool {
    is_transient(status.as_u16()) && status != StatusCode::TOO_MANY_REQUESTS
}

/// Parses `Retry-After`, which is a number of seconds or an HTTP date (RFC 9110, 10.2.3), as a
/// duration from `now`. Some servers send a fraction, a unit, quotes or a timestamp in another
/// format, such as seconds since 1970. Returns `None` if the value names no time.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches(|c: char| c.is_whitespace() || c == '"');
    let digits = value.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')));
    let (number, unit) = value.split_at(digits.unwrap_or(value.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let is_seconds = matches!(
        unit.as_str(),
        "" | "s" | "sec" | "secs" | "second" | "seconds"
    );
    if is_seconds && let Ok(seconds) = number.parse::<f64>() {
        // a negative number is a time in the past, and a huge one does not fit into a duration
        let wait = Duration::try_from_secs_f64(seconds.max(0.0).ceil());
        let wait = wait.unwrap_or(Duration::MAX);
        // nobody asks to wait for 31 years (docker/hub-feedback#2459)
        let is_time = wait >= Duration::from_secs(1_000_000_000);
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.ok().filter(|_| is_time).unwrap_or_default();
        return Some(bounded(wait.saturating_sub(since)));
    }
    let time = httpdate::parse_http_date(value).ok().or_else(|| {
        let stamp = value.parse::<jiff::Timestamp>().ok();
        // the dates of mails, with `UTC` or `+0000` in place of `GMT`
        let mail = || Some(jiff::fmt::rfc2822::parse(value).ok()?.timestamp());
        Some(stamp.or_else(mail)?.into())
    })?;
    // a date in the past is a wait of 0
    Some(bounded(time.duration_since(now).unwrap_or_default()))
}

/// Limits a duration from a server to a year: a longer one might overflow when it is added to a
/// date.
pub(super) fn bounded(time: Duration) -> Duration {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    time.min(YEAR)
}

// Notices about failing hosts whose requests wait for the next attempt. Without them, a run that
// is slow for this reason would show nothing until its end.

/// The minimum time between two notices about one host.
const INTERVAL: Duration = Duration::from_secs(10);

/// The number of requests that wait to be retried, by `host:port`, and when that was last shown.
#[derive(Default)]
pub(super) struct RetryNotices(Mutex<HashMap<String, (usize, Option<Instant>)>>);

/// A guard that counts a request as waiting until the guard is dropped.
pub(super) struct WaitingRequest<'a> {
    notices: &'a RetryNotices,
    host: &'a str,
}

impl RetryNotices {
    /// Counts a request to `host` as waiting until the returned value is dropped.
    pub(super) fn wait<'a>(&'a self, host: &'a str) -> WaitingRequest<'a> {
        locked(&self.0).entry(host.to_owned()).or_default().0 += 1;
        WaitingRequest {
            notices: self,
            host,
        }
    }

    /// Returns the notice about `host` and its `error`. `None` if one was shown less than
    /// [`INTERVAL`] ago, or if no request to the host has waited yet.
    pub(super) fn line(&self, host: &str, error: &HttpError) -> Option<String> {
        let mut hosts = locked(&self.0);
        // every worker that fails at the host calls this, but people need only one line
        let (waiting, shown) = hosts.get_mut(host)?;
        if shown.is_some_and(|shown| shown.elapsed() < INTERVAL) {
            return None;
        }
        *shown = Some(Instant::now());
        // a status says enough; the message may be long
        let reason = match error.status {
            Some(status) => status.to_string(),
            None => error.message().to_owned(),
        };
        let requests = match waiting {
            1 => "1 request waiting".to_owned(),
            waiting => format!("{waiting} requests waiting"),
        };
        let shown = shown_host(host);
        Some(format!("{shown}: {reason}, {requests} to retry"))
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if let Some((waiting, _)) = locked(&self.notices.0).get_mut(self.host) {
            *waiting -= 1;
        }
    }
}

// Retries reading a whole body that broke off or is not the expected content. This is the policy
// for manifests, lists, git packs, and files that are downloaded while they are locked. The
// request itself is retried by [`Transport::send`](crate::Transport::send).

/// The failure of an attempt to read a whole body, by whether another attempt may help.
#[derive(Debug)]
pub enum BodyFailure<E> {
    /// Another attempt would not help: the request failed, or was refused.
    Final(E),
    /// The body broke off; it is retried like a failed request.
    Broke(E),
    /// The body is complete, but not the expected content. The first time, a bad connection or
    /// cache may be the cause; the second time, the source itself has wrong content.
    Wrong(E),
}

impl<E: From<HttpError>> BodyFailure<E> {
    /// Returns the failure of a body that ended with `error`.
    pub fn reading(error: HttpError) -> BodyFailure<E> {
        match error.kind {
            ErrorKind::Network => BodyFailure::Broke(error.into()),
            _ => BodyFailure::Final(error.into()),
        }
    }
}

impl<E: From<HttpError>> From<HttpError> for BodyFailure<E> {
    fn from(error: HttpError) -> BodyFailure<E> {
        BodyFailure::Final(error.into())
    }
}

impl RetryPolicy {
    /// Reads a whole body with `read`, again if it broke off, and once more if it was wrong. After
    /// a wrong body there is no pause: the host is not overloaded, and a pause would only keep a
    /// transfer slot from other hosts.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn read_body<T, E, F>(self, mut read: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, BodyFailure<E>>>,
    {
        let mut attempts = self.start();
        let mut was_wrong = false;
        loop {
            let (error, is_retried) = match read().await {
                Ok(body) => return Ok(body),
                Err(BodyFailure::Final(error)) => (error, false),
                // a source that has the wrong content would be downloaded five times otherwise
                Err(BodyFailure::Wrong(error)) => {
                    let is_second = std::mem::replace(&mut was_wrong, true);
                    (error, !is_second && attempts.fail().is_some())
                }
                Err(BodyFailure::Broke(error)) => (error, attempts.wait_for_next().await),
            };
            if !is_retried {
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use futures_util::FutureExt;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after("120", now), Some(Duration::from_mins(2)));
        assert_eq!(
            retry_after("Sun, 06 Nov 1994 08:50:07 GMT", now),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            retry_after("Sat, 06 Nov 1993 08:50:07 GMT", now),
            Some(Duration::ZERO)
        );
        for text in ["soon", "", "-", "1.2.3", "5 minutes", "Sun, 99 Nov 1994"] {
            assert_eq!(retry_after(text, now), None, "{text}");
        }
        for (text, seconds) in [
            ("1.5", 2),
            ("-3", 0),
            ("+4", 4),
            ("\"30\"", 30),
            ("30s", 30),
            ("30 seconds", 30),
            ("1994-11-06T08:50:07Z", 30),
            ("1994-11-06T10:50:07+02:00", 30),
            ("Sunday, 06-Nov-94 08:50:07 GMT", 30),
            ("Sun, 06 Nov 1994 08:50:07 UTC", 30),
            ("Sun, 6 Nov 1994 09:50:07 +0100", 30),
            ("Sun, 06 Nov 1994 08:50:07 gmt", 30),
            ("99999999999999999999999", 365 * 24 * 3600),
        ] {
            let expected = Duration::from_secs(seconds);
            assert_eq!(retry_after(text, now), Some(expected), "{text}");
        }
        assert!(retry_after("18446744073709551615", now).unwrap() < Duration::from_hours(400 * 24));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_746_136_878);
        for (text, seconds) in [("1746136938", 60), ("1746136878", 0), ("1700000000", 0)] {
            let expected = Duration::from_secs(seconds);
            assert_eq!(retry_after(text, now), Some(expected), "{text}");
        }
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        let wait = |attempt| RetryPolicy::new(&Limits::default()).pause(attempt);
        assert!(wait(1) >= Duration::from_millis(150) && wait(1) <= Duration::from_millis(450));
        assert!(wait(4) >= Duration::from_millis(1200));
        assert!(wait(40) <= Duration::from_secs(45));
    }

    #[test]
    fn attempts_are_limited_and_can_be_reset() {
        let limits = Limits {
            attempts: 2,
            ..Limits::default()
        };
        let mut attempts = RetryPolicy::new(&limits).start();
        assert!(attempts.fail().is_some() && attempts.fail().is_none());
        attempts.reset();
        assert!(attempts.fail().is_some());
        assert!(
            RetryPolicy::new(&limits)
                .single_attempt()
                .start()
                .fail()
                .is_none()
        );
    }

    #[test]
    fn a_line_counts_waiting_requests_and_is_shown_at_intervals() {
        let retrying = RetryNotices::default();
        let why = HttpError::new(ErrorKind::Status(502), "502 Bad Gateway");
        let host = "ghcr.io:443";
        assert_eq!(retrying.line(host, &why), None);
        let first = retrying.wait(host);
        let _second = retrying.wait(host);
        assert_eq!(
            retrying.line(host, &why).unwrap(),
            "ghcr.io: 502, 2 requests waiting to retry"
        );
        drop(first);
        assert_eq!(retrying.line(host, &why), None);
        locked(&retrying.0).get_mut(host).unwrap().1 = None;
        let why = HttpError::new(ErrorKind::Network, "cannot connect: connection refused");
        let line = "ghcr.io: cannot connect: connection refused, 1 request waiting to retry";
        assert_eq!(retrying.line(host, &why).unwrap(), line);
    }

    /// The number of attempts if each fails like this.
    async fn attempts(failure: fn(&'static str) -> BodyFailure<&'static str>) -> u32 {
        let limits = Limits {
            attempts: 5,
            backoff: Duration::from_millis(1),
            ..Limits::default()
        };
        let mut made = 0;
        let read = RetryPolicy::new(&limits).read_body(|| {
            made += 1;
            std::future::ready(Err::<(), _>(failure("no")))
        });
        assert_eq!(read.await, Err("no"));
        made
    }

    #[tokio::test]
    async fn a_wrong_body_is_retried_without_a_pause() {
        let limits = Limits {
            attempts: 5,
            backoff: Duration::from_hours(1),
            ..Limits::default()
        };
        let read = RetryPolicy::new(&limits)
            .read_body(|| std::future::ready(Err::<(), _>(BodyFailure::Wrong("no"))));
        assert_eq!(read.now_or_never(), Some(Err("no")));
    }

    #[tokio::test]
    async fn a_broken_body_gets_five_attempts_a_wrong_body_two_and_a_refusal_one() {
        assert_eq!(attempts(BodyFailure::Broke).await, 5);
        assert_eq!(attempts(BodyFailure::Wrong).await, 2);
        assert_eq!(attempts(BodyFailure::Final).await, 1);
    }
}
