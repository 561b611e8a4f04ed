//! Sends a request, and again where that may help: after which answers and errors, how long to wait
//! before, and when to end the item because the host asks for a longer wait.

use super::body::HttpResponse;
use super::error::{ErrorKind, HttpError, host_port};
use super::rate_limit::{RateLimit, span};
use super::request::HttpRequest;
use super::retry::{self, Attempts, RetryPolicy};
use super::transport::Transport;
use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use url::Url;

/// What helps against a rate limit besides time.
pub const SIGN_IN_HINT: &str = "; at most registries an account has a higher limit: sign in with docker or podman login, or name one in the site";

/// The host and port of a request, and the upstream that a mirror stands for.
fn shown_host(origin: Option<&str>, url: &Url) -> String {
    let host = host_port(url);
    origin.map_or(host.clone(), |origin| {
        format!("{host}, the mirror of {origin}")
    })
}

/// The host that failed, by its port too, and how: it did not answer, or only with an error of its
/// own. A host that asks to wait is waited for, as long as `--max-wait` allows.
fn failure(result: &Result<HttpResponse, HttpError>) -> Option<(String, HttpError)> {
    match result {
        Ok(response) if response.headers.contains_key(RETRY_AFTER) => None,
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

/// What the loop counts for one request.
struct Tally {
    attempts: Attempts,
    /// How often the server said "later", and how long the waits were in all.
    waits: u32,
    waited: Duration,
    /// A redirect led to a refusal once.
    expired: bool,
}

impl Transport {
    /// Sends `request`; follows redirects; tries again where that may help.
    ///
    /// # Errors
    /// No answer after all attempts, or a wait longer than allowed. Any status that is an answer is
    /// returned, 4xx and 5xx included.
    //
    // Boxed: the state machine of a request is large, and the compiler generates code for an
    // `async fn` again in each crate that awaits it.
    pub fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(self.send_with_retries(request))
    }

    async fn send_with_retries(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let retries = if request.retried {
            self.retry_policy()
        } else {
            self.retry_policy().single_attempt()
        };
        let began = Instant::now();
        let mut tally = Tally {
            attempts: retries.start(),
            waits: 0,
            waited: Duration::ZERO,
            expired: false,
        };
        loop {
            let result = self.follow(request).await;
            let pause = match &result {
                Ok(response) => self.pause_after(request, response, &mut tally)?,
                Err(error) if error.is_transient() => tally.attempts.fail(),
                Err(_) => None,
            };
            let failure = if request.retried {
                failure(&result)
            } else {
                None
            };
            let Some((host, error)) = failure else {
                let Some(pause) = pause else { return result };
                drop(result);
                self.pause(pause).await;
                continue;
            };
            if let Some(given_up) = self.failed(&host, began, pause.is_none(), &error) {
                return Err(given_up);
            }
            let Some(pause) = pause else { return result };
            drop(result);
            let _waiting = self.0.retrying.wait(&host);
            // the first failure may be a passing one
            if tally.attempts.failed() > 1
                && let Some(line) = self.0.retrying.line(&host, &error)
            {
                self.progress().note(&line);
            }
            self.pause(pause).await;
        }
    }

    /// Counts a failed attempt at a request to `host`, as [`super::lost_hosts::LostHosts::failed`]
    /// does, and tells people when that gives the host up.
    pub(super) fn failed(
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
        self.note_once(&given_up.to_string());
        Some(given_up.caused_by(error.clone()))
    }

    /// Waits before another attempt.
    async fn pause(&self, pause: Duration) {
        let _busy = self.activity().busy();
        tokio::time::sleep(pause).await;
    }

    /// How long to wait before the next attempt, or `None` where the answer stands.
    fn pause_after(
        &self,
        request: &HttpRequest,
        response: &HttpResponse,
        tally: &mut Tally,
    ) -> Result<Option<Duration>, HttpError> {
        let limiter = self.limiter(&response.url, request.slot_class());
        let rate_limit = RateLimit::read(&response.headers);
        if let Some(rate_limit) = &rate_limit {
            self.show_rate_limit(request, response, rate_limit);
        }
        if !retry::is_transient(response.status.as_u16()) {
            limiter.raise();
            // a signed URL may have run out on the way; the registry gives a new one
            let refused = matches!(response.status, StatusCode::FORBIDDEN | StatusCode::GONE);
            let redirected = response.url.origin() != request.url.origin();
            if refused
                && redirected
                && request.retried
                && !std::mem::replace(&mut tally.expired, true)
            {
                return Ok(Some(self.retry_policy().pause(1)));
            }
            return Ok(None);
        }
        let limits = self.limits();
        let asked = response
            .headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|value| retry::retry_after(value, SystemTime::now()));
        let limited = response.status == StatusCode::TOO_MANY_REQUESTS;
        let asked = asked.or_else(|| rate_limit.filter(|_| limited)?.spent());
        let later =
            limited || (asked.is_some() && response.status == StatusCode::SERVICE_UNAVAILABLE);
        if !later {
            return Ok(tally.attempts.fail());
        }
        limiter.lower(response.asked);
        let given_up = || self.put_off(response);
        if let Some(given_up) =
            self.0
                .lost_hosts
                .put_off(&host_port(&response.url), limits, given_up)
        {
            self.note_once(&given_up.to_string());
            return Err(given_up);
        }
        let wait = asked
            .unwrap_or_default()
            .max(self.retry_policy().pause(tally.waits + 1));
        if let Some(asked) = asked
            && (tally.waited + asked).as_secs() > limits.max_wait_secs
        {
            let origin = request.origin.as_deref();
            let error = self.come_back(origin, response, asked, tally.waited);
            limiter.refuse((request.metered, origin), asked, error.clone());
            return Err(error);
        }
        // where the host names no time, landfall tries less often
        let most = if asked.is_some() {
            limits.waits
        } else {
            limits.waits / 2
        };
        if tally.waits >= most {
            return Ok(None);
        }
        tally.waits += 1;
        tally.waited += wait;
        let shown = Duration::from_secs(5);
        if limiter.pause_for(wait) && wait >= shown {
            let host = shown_host(request.origin.as_deref(), &response.url);
            let why = if limited {
                " (429, its rate limit)"
            } else {
                ""
            };
            self.progress().note(&format!(
                "{host} asks to wait{why}: resumes in {} s",
                wait.as_secs()
            ));
        }
        Ok(Some(wait))
    }

    /// How often this run tries, and how long it pauses between.
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::new(self.limits())
    }

    /// The error for everything that a host was to be asked that puts off every request.
    fn put_off(&self, response: &HttpResponse) -> HttpError {
        let most = span(Duration::from_secs(self.limits().max_wait_secs));
        let limited = response.status == StatusCode::TOO_MANY_REQUESTS;
        let words = format!(
            "given up for this run: it has put off every request ({}) for longer than --max-wait {most}; run it again \
             later, it resumes here{}",
            response.status,
            if limited { SIGN_IN_HINT } else { "" }
        );
        let host = host_port(&response.url);
        HttpError::new(ErrorKind::GivenUp, words).about(host.strip_suffix(":443").unwrap_or(&host))
    }

    fn come_back(
        &self,
        origin: Option<&str>,
        response: &HttpResponse,
        wait: Duration,
        waited: Duration,
    ) -> HttpError {
        let when = httpdate::fmt_http_date(SystemTime::now() + wait);
        let (wait_shown, most) = (
            span(wait),
            span(Duration::from_secs(self.limits().max_wait_secs)),
        );
        let already = match waited.as_secs() {
            0 => String::new(),
            seconds => format!(", after {seconds} s of waiting"),
        };
        let (limit, advice) = match response.status {
            StatusCode::TOO_MANY_REQUESTS => ("its rate limit is reached (429): ", SIGN_IN_HINT),
            _ => ("", ""),
        };
        let rate_limit = RateLimit::read(&response.headers);
        let rate_limit = rate_limit
            .map(|limit| format!(" ({})", limit.shown()))
            .unwrap_or_default();
        let message = format!(
            "{limit}it asks to come back in {wait_shown}{already}, which is longer than --max-wait {most}{rate_limit}; \
             run it again after {when}, it resumes here{advice}"
        );
        let host = shown_host(origin, &response.url);
        HttpError::new(ErrorKind::RetryAfter(wait), message)
            .at(&response.url)
            .with_status(response.status)
            .about(host)
    }

    /// Shown once a host.
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
        let mut shown = self
            .0
            .rate_limits
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if shown.insert(host.to_owned()) {
            self.progress()
                .note(&format!("{host}: {}", rate_limit.shown()));
        }
    }
}
