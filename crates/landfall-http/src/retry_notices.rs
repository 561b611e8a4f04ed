//! Notices about failing hosts whose requests wait for the next attempt. Without them, a run that
//! is slow for this reason would show nothing until its end.

use super::error::HttpError;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// The minimum time between two notices about one host.
const INTERVAL: Duration = Duration::from_secs(10);

/// The requests that wait to be retried, by `host:port`.
#[derive(Default)]
pub(super) struct RetryNotices(Mutex<HashMap<String, RetriedHost>>);

#[derive(Default)]
struct RetriedHost {
    waiting: usize,
    shown: Option<Instant>,
}

/// A guard that counts a request as waiting until the guard is dropped.
pub(super) struct WaitingRequest<'a> {
    notices: &'a RetryNotices,
    host: &'a str,
}

impl RetryNotices {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, RetriedHost>> {
        locked(&self.0)
    }

    /// Counts a request to `host` as waiting until the returned value is dropped.
    pub(super) fn wait<'a>(&'a self, host: &'a str) -> WaitingRequest<'a> {
        self.hosts().entry(host.to_owned()).or_default().waiting += 1;
        WaitingRequest {
            notices: self,
            host,
        }
    }

    /// Returns the notice about `host` and its `error`. `None` if one was shown less than
    /// [`INTERVAL`] ago, or if no request to the host has waited yet.
    pub(super) fn line(&self, host: &str, error: &HttpError) -> Option<String> {
        let mut hosts = self.hosts();
        // every worker that fails at the host calls this, but people need only one line
        let known = hosts.get_mut(host)?;
        if known.shown.is_some_and(|shown| shown.elapsed() < INTERVAL) {
            return None;
        }
        known.shown = Some(Instant::now());
        // a status says enough; the message may be long
        let reason = match error.status {
            Some(status) => status.to_string(),
            None => error.message().to_owned(),
        };
        let requests = match known.waiting {
            1 => "1 request waiting".to_owned(),
            waiting => format!("{waiting} requests waiting"),
        };
        let shown = host.strip_suffix(":443").unwrap_or(host);
        Some(format!("{shown}: {reason}, {requests} to retry"))
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.notices.hosts().get_mut(self.host) {
            known.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

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
        retrying.hosts().get_mut(host).unwrap().shown = None;
        let why = HttpError::new(ErrorKind::Network, "cannot connect: connection refused");
        let line = "ghcr.io: cannot connect: connection refused, 1 request waiting to retry";
        assert_eq!(retrying.line(host, &why).unwrap(), line);
    }
}
