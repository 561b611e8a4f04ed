//! Sends a request and retries it if that may help. Decides after which responses and errors to
//! retry, how long to wait before a retry, and when to fail because the host asks for too long a
//! wait.

use crate::body::HttpResponse;
use crate::error::{ErrorKind, HttpError, host_port, redacted_url, shown_host};
use crate::exchange::HttpRequest;
use crate::ledger::rounded;
use crate::rate_limit::{RateLimit, human_span};
use crate::retry::{self, Attempts, RetryPolicy};
use crate::transport::Transport;
use futures_util::future::BoxFuture;
use landfall_model::{Limits, locked};
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tracing::warn;
use url::Url;

/// Advice that is appended to messages about a rate limit.
pub const SIGN_IN_HINT: &str = "; with most registries an account has a higher limit: sign in \
     with docker or podman login, or name the account in the site";

/// The minimum wait that is shown to people.
const SHOWN_WAIT: Duration = Duration::from_secs(5);

/// The counters of one request.
struct RequestTally {
    attempts: Attempts,
    /// The number of times that the server asked to wait.
    waits: u32,
    /// The total time of these waits.
    waited: Duration,
    /// Whether the target of a redirect refused the request before.
    was_refused_elsewhere: bool,
}

impl Transport {
    /// Sends `request`, follows redirects, and retries if that may help.
    ///
    /// A final response is returned whatever its status is, including 4xx and 5xx.
    ///
    /// # Errors
    /// If the last attempt gets no response, or an attempt fails with an error that is not retried;
    /// if landfall no longer uses the host in this run; or if the host requires a longer wait than
    /// allowed ([`ErrorKind::RetryAfter`]).
    pub fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        // Boxed, because the state machine of a request is large, and the compiler generates code
        // for an `async fn` again in each crate that awaits it.
        Box::pin(self.send_with_retries(request))
    }

    async fn send_with_retries(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let policy = if request.retried {
            self.retry_policy()
        } else {
            self.retry_policy().single_attempt()
        };
        let began = Instant::now();
        let mut tally = RequestTally {
            attempts: policy.start(),
            waits: 0,
            waited: Duration::ZERO,
            was_refused_elsewhere: false,
        };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let result = self.follow(request, attempt).await;
            let mut pause = match &result {
                Ok(response) => self.pause_after(request, response, &mut tally)?,
                Err(error) if error.is_transient() => tally.attempts.fail(),
                Err(_) => None,
            };
            let failure = host_failure(&result).filter(|_| request.retried);
            if let Some((host, error)) = &failure
                && let Some(given_up) = self.count_failure(host, began, pause.is_none(), error)
            {
                return Err(given_up);
            }
            if let Some((host, _)) = &failure
                && self.0.lost_hosts.is_doubtful(host)
            {
                let host = shown_host(host);
                self.note_once(&format!(
                    "{host}: its requests keep failing, and are not repeated until one succeeds"
                ));
                pause = None;
            }
            let Some(pause) = pause else {
                return result;
            };
            log_retry(request, &result, attempt, pause);
            // The response holds a slot of its host, which other requests can use during the pause.
            drop(result);
            let Some((host, error)) = failure else {
                self.sleep(pause).await;
                continue;
            };
            let _waiting = self.0.retrying.wait(&host);
            // A single failure is not worth a notice.
            if tally.attempts.failed > 1
                && let Some(line) = self.0.retrying.line(&host, &error)
            {
                self.progress().note(&line);
            }
            self.sleep(pause).await;
        }
    }

    /// Counts a failed attempt at a request to `host` by
    /// [`LostHosts::failed`](super::lost_hosts::LostHosts::failed). Shows a notice if landfall
    /// stops using the host because of it.
    pub(super) fn count_failure(
        &self,
        host: &str,
        began: Instant,
        is_last: bool,
        error: &HttpError,
    ) -> Option<HttpError> {
        let given_up = self
            .0
            .lost_hosts
            .failed(host, began, is_last, self.limits(), error)?;
        warn!(host, %error, "the host is skipped for the rest of this run");
        self.note_given_up(host);
        Some(given_up.caused_by(error.clone()))
    }

    /// Shows that `host` gets no more requests. The command reports the reason at its end, as the
    /// error of each item that needs the host.
    fn note_given_up(&self, host: &str) {
        let bare = shown_host(host);
        self.note_once(&format!(
            "{bare}: skipped for the rest of this run; the reason follows at the end"
        ));
    }

    async fn sleep(&self, pause: Duration) {
        let _busy = self.activity().busy();
        tokio::time::sleep(pause).await;
    }

    /// Returns the pause before the next attempt; `None` if the response is final.
    fn pause_after(
        &self,
        request: &HttpRequest,
        response: &HttpResponse,
        tally: &mut RequestTally,
    ) -> Result<Option<Duration>, HttpError> {
        let limiter = self.limiter(&response.url);
        let rate_limit = RateLimit::read(&response.headers);
        if let Some(rate_limit) = &rate_limit {
            self.show_rate_limit(request, response, rate_limit);
        }
        if !retry::is_transient(response.status.as_u16()) {
            limiter.grow(request.slot_class());
            return Ok(self.pause_after_refused_redirect(request, response, tally));
        }
        let is_limited = response.status == StatusCode::TOO_MANY_REQUESTS;
        // Without `Retry-After`, the window of a used-up quota is the longest wait that can be
        // needed.
        let requested =
            requested_wait(response).or_else(|| rate_limit.filter(|_| is_limited)?.wait_if_spent());
        let is_postponed = is_limited
            || (response.status == StatusCode::SERVICE_UNAVAILABLE && requested.is_some());
        if !is_postponed {
            return Ok(tally.attempts.fail());
        }
        limiter.halve(request.slot_class(), response.sent_at);
        let limits = self.limits();
        let given_up = self
            .0
            .lost_hosts
            .postpone(&host_port(&response.url), limits, || {
                postponed_error(response, limits)
            });
        if let Some(given_up) = given_up {
            self.note_given_up(&host_port(&response.url));
            return Err(given_up);
        }
        let wait = requested
            .unwrap_or_default()
            .max(self.retry_policy().pause(tally.waits + 1));
        // All requests with this key fail at once now, instead of asking the host one by one.
        if let Some(requested) = requested
            && (tally.waited + requested).as_secs() > limits.max_wait_secs
        {
            let error = retry_after_error(request, response, requested, tally.waited, limits);
            limiter.defer(request.quota_key(), requested, error.clone());
            return Err(error);
        }
        // If the host names no time, the request ends after half as many waits.
        let max_waits = if requested.is_some() {
            limits.waits
        } else {
            limits.waits / 2
        };
        // the response is returned as it is, and the caller reports its status
        if tally.waits >= max_waits {
            return Ok(None);
        }
        tally.waits += 1;
        tally.waited += wait;
        if limiter.pause_for(wait) && wait >= SHOWN_WAIT {
            let host = host_and_origin(request.origin.as_deref(), &response.url);
            let reason = if is_limited {
                " (429, its rate limit)"
            } else {
                ""
            };
            self.progress().note(&format!(
                "{host} asks to wait{reason}: resumes in {} s",
                wait.as_secs()
            ));
        }
        Ok(Some(wait))
    }

    /// Returns the pause before another attempt if the target of a redirect refused the request for
    /// the first time. A signed URL may have expired while its request waited for a slot; the
    /// registry then redirects to a new one.
    fn pause_after_refused_redirect(
        &self,
        request: &HttpRequest,
        response: &HttpResponse,
        tally: &mut RequestTally,
    ) -> Option<Duration> {
        // the statuses with which object stores answer an expired signature; Google and, for
        // temporary credentials, Amazon answer 400
        let is_refused = matches!(
            response.status,
            StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN | StatusCode::GONE
        );
        let is_elsewhere = response.url.origin() != request.url.origin();
        if !(is_refused && is_elsewhere && request.retried) || tally.was_refused_elsewhere {
            return None;
        }
        tally.was_refused_elsewhere = true;
        Some(self.retry_policy().pause(1))
    }

    /// Returns the number of attempts of this run and the pauses between them.
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::new(self.limits())
    }

    /// Shows the rate limit of a host, once per run.
    fn show_rate_limit(
        &self,
        request: &HttpRequest,
        response: &HttpResponse,
        rate_limit: &RateLimit,
    ) {
        let host = request
            .origin
            .as_deref()
            .or(response.url.host_str())
            .unwrap_or("?");
        if locked(&self.0.rate_limits).insert(host.to_owned()) {
            self.progress().note(&format!("{host}: {rate_limit}"));
        }
    }
}

fn log_retry(
    request: &HttpRequest,
    result: &Result<HttpResponse, HttpError>,
    attempt: u32,
    pause: Duration,
) {
    let reason: &dyn std::fmt::Display = match result {
        Ok(response) => &response.status,
        Err(error) => error,
    };
    warn!(
        method = %request.method,
        url = %redacted_url(&request.url),
        attempt,
        pause = ?rounded(pause),
        %reason,
        "retrying"
    );
}

/// Returns the wait in `Retry-After` of a response.
fn requested_wait(response: &HttpResponse) -> Option<Duration> {
    // a date is one of the server's clock, from which that of this machine may differ
    let date = response.header("date");
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let now = date.unwrap_or_else(SystemTime::now);
    let values = response.headers.get_all(RETRY_AFTER).iter();
    values
        .filter_map(|value| retry::retry_after(value.to_str().ok()?, now))
        .max()
}

/// Returns the host that failed, as `host:port`, and its error: no answer, or a transient status.
/// A host that asks to wait has not failed.
fn host_failure(result: &Result<HttpResponse, HttpError>) -> Option<(String, HttpError)> {
    match result {
        // the host responds, and names a time
        Ok(response) if requested_wait(response).is_some() => None,
        Ok(response) if retry::is_failing(response.status) => {
            let words = format!("it answered {}", response.status);
            let kind = ErrorKind::Status(response.status.as_u16());
            Some((
                host_port(&response.url),
                HttpError::new(kind, words).at(&response.url),
            ))
        }
        Err(error) if error.is_transient() => Some((error.host()?.to_owned(), error.clone())),
        _ => None,
    }
}

/// Returns the host and port of a URL, with the upstream if it is a mirror.
fn host_and_origin(origin: Option<&str>, url: &Url) -> String {
    let host = host_port(url);
    match origin {
        Some(origin) => format!("{host}, the mirror of {origin}"),
        None => host,
    }
}

/// Returns the error for all further requests to a host that has postponed every request for too
/// long.
fn postponed_error(response: &HttpResponse, limits: &Limits) -> HttpError {
    let hint = if response.status == StatusCode::TOO_MANY_REQUESTS {
        SIGN_IN_HINT
    } else {
        ""
    };
    let words = format!(
        "skipped for the rest of this run: it postponed every request ({}) for longer than \
         --max-wait {}; run it again later to resume{hint}",
        response.status,
        human_span(Duration::from_secs(limits.max_wait_secs)),
    );
    let host = host_port(&response.url);
    HttpError::new(ErrorKind::GivenUp, words).about(shown_host(&host))
}

/// Returns the error for a host that asks for a longer wait than `--max-wait` allows.
fn retry_after_error(
    request: &HttpRequest,
    response: &HttpResponse,
    wait: Duration,
    waited: Duration,
    limits: &Limits,
) -> HttpError {
    let max = human_span(Duration::from_secs(limits.max_wait_secs));
    let longer = match waited.as_secs() {
        0 => format!("which is longer than --max-wait {max}"),
        seconds => format!(
            "and landfall already waited {seconds} s: together, this is longer than --max-wait \
             {max}"
        ),
    };
    let (reason, hint) = match response.status {
        StatusCode::TOO_MANY_REQUESTS => ("its rate limit is reached (429): ", SIGN_IN_HINT),
        _ => ("", ""),
    };
    let rate_limit = RateLimit::read(&response.headers)
        .map(|limit| format!(" ({limit})"))
        .unwrap_or_default();
    let message = format!(
        "{reason}it asks to retry in {}, {longer}{rate_limit}; run it again after {} to \
         resume{hint}",
        human_span(wait),
        httpdate::fmt_http_date(SystemTime::now() + wait),
    );
    HttpError::new(ErrorKind::RetryAfter(wait), message)
        .at(&response.url)
        .with_status(response.status)
        .about(host_and_origin(request.origin.as_deref(), &response.url))
}
