//! Trying again: which answers and errors are worth it, how long to wait before, and when to give up
//! until another time.

use super::body::Response;
use super::error::{Error, ErrorKind};
use super::quota::{Quota, span};
use super::retry;
use super::transport::{Request, Transport};
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use std::time::{Duration, SystemTime};

/// What is counted over the attempts of one request.
#[derive(Default)]
struct Tally {
    /// Attempts that failed.
    failed: u32,
    /// How often the server said "later", and how long that was in all.
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
    pub async fn send(&self, request: &Request) -> Result<Response, Error> {
        let mut tally = Tally::default();
        loop {
            let result = self.follow(request).await;
            let pause = match &result {
                Ok(response) => self.pause_after(request, response, &mut tally)?,
                Err(error) => self.pause_of(request, error.is_transient(), &mut tally),
            };
            let Some(pause) = pause else { return result };
            drop(result);
            tokio::time::sleep(pause).await;
        }
    }

    /// How long to wait before the next attempt, or `None` where the answer stands.
    fn pause_after(
        &self,
        request: &Request,
        response: &Response,
        tally: &mut Tally,
    ) -> Result<Option<Duration>, Error> {
        let gate = self.gate(&response.url);
        let quota = Quota::read(&response.headers);
        if let Some(quota) = &quota {
            self.show_quota(request, response, quota);
        }
        if !retry::is_transient(response.status.as_u16()) {
            gate.widen();
            // a signed URL may have run out on the way; the registry gives a new one
            let refused = matches!(response.status, StatusCode::FORBIDDEN | StatusCode::GONE);
            let redirected = response.url.origin() != request.url.origin();
            if refused && redirected && request.retried && !std::mem::replace(&mut tally.expired, true) {
                return Ok(Some(self.backoff(1)));
            }
            return Ok(None);
        }
        let limits = self.limits();
        let asked = response.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|value| retry::retry_after(value, SystemTime::now()));
        let limited = response.status == StatusCode::TOO_MANY_REQUESTS;
        let asked = asked.or_else(|| quota.filter(|_| limited)?.spent());
        let later = limited || (asked.is_some() && response.status == StatusCode::SERVICE_UNAVAILABLE);
        if !later {
            return Ok(self.pause_of(request, true, tally));
        }
        gate.narrow(response.asked);
        let wait = asked.unwrap_or_default().max(self.backoff(tally.waits + 1));
        if let Some(asked) = asked
            && (tally.waited + asked).as_secs() > limits.max_wait_secs
        {
            let error = self.come_back(response, asked, tally.waited);
            gate.refuse(request.metered, asked, error.clone());
            return Err(error);
        }
        // without a word about when, it is not tried as often
        let most = if asked.is_some() { limits.waits } else { limits.waits / 2 };
        if tally.waits >= most {
            return Ok(None);
        }
        tally.waits += 1;
        tally.waited += wait;
        let shown = Duration::from_secs(5);
        if gate.close_for(wait) && wait >= shown {
            let host = response.url.host_str().unwrap_or("?");
            self.progress().note(&format!("{host} asks to wait: going on in {} s", wait.as_secs()));
        }
        Ok(Some(wait))
    }

    /// The pause after an attempt that failed.
    fn pause_of(&self, request: &Request, transient: bool, tally: &mut Tally) -> Option<Duration> {
        let attempts = if request.retried { self.limits().attempts } else { 1 };
        tally.failed += 1;
        (transient && tally.failed < attempts).then(|| self.backoff(tally.failed))
    }

    pub(super) fn backoff(&self, attempt: u32) -> Duration {
        retry::backoff(attempt, self.limits().backoff, self.limits().backoff_most)
    }

    /// The pause before another attempt at something that was begun anew; attempts count from 1.
    pub async fn pause(&self, attempt: u32) {
        tokio::time::sleep(self.backoff(attempt)).await;
    }

    fn come_back(&self, response: &Response, wait: Duration, waited: Duration) -> Error {
        let when = httpdate::fmt_http_date(SystemTime::now() + wait);
        let host = response.url.host_str().unwrap_or("?");
        let (wait_shown, most) = (span(wait), span(Duration::from_secs(self.limits().max_wait_secs)));
        let already = match waited.as_secs() {
            0 => String::new(),
            seconds => format!(", after {seconds} s of waiting"),
        };
        let quota = Quota::read(&response.headers);
        let quota = quota.map(|quota| format!(" ({})", quota.shown())).unwrap_or_default();
        let message = format!(
            "{host} asks to come back in {wait_shown}{already}, which is longer than --max-wait {most}{quota}; run \
             it again after {when}, it goes on from here"
        );
        Error::new(ErrorKind::ComeBack(wait), message)
    }

    /// Shown once a host.
    fn show_quota(&self, request: &Request, response: &Response, quota: &Quota) {
        let host = request.origin.as_deref().or(response.url.host_str()).unwrap_or("?");
        let mut shown = self.0.quotas.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if shown.insert(host.to_owned()) {
            self.progress().note(&format!("{host}: {}", quota.shown()));
        }
    }
}
