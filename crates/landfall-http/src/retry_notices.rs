//! Shows which hosts fail while requests wait to be sent again: without it a run that is slow says
//! nothing until its end.

use super::error::HttpError;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long after a line about a host the next one may follow.
const PAUSE: Duration = Duration::from_secs(10);

/// The requests that wait until they are sent again, by host and port.
#[derive(Default)]
pub(super) struct Retrying(Mutex<HashMap<String, Host>>);

#[derive(Default)]
struct Host {
    waiting: usize,
    shown: Option<Instant>,
}

/// One request that waits; counted until this is dropped.
pub(super) struct Waiting<'a> {
    retrying: &'a Retrying,
    host: &'a str,
}

impl Retrying {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Host>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more request to `host` that waits.
    pub(super) fn wait<'a>(&'a self, host: &'a str) -> Waiting<'a> {
        self.hosts().entry(host.to_owned()).or_default().waiting += 1;
        Waiting {
            retrying: self,
            host,
        }
    }

    /// The line about `host` and why it fails, unless one was shown a moment ago.
    pub(super) fn line(&self, host: &str, why: &HttpError) -> Option<String> {
        let mut hosts = self.hosts();
        let known = hosts.get_mut(host)?;
        if known.shown.is_some_and(|shown| shown.elapsed() < PAUSE) {
            return None;
        }
        known.shown = Some(Instant::now());
        let why = why
            .status
            .map_or_else(|| why.message().to_owned(), |status| status.to_string());
        let requests = match known.waiting {
            1 => "1 request waiting".to_owned(),
            waiting => format!("{waiting} requests waiting"),
        };
        let shown = host.strip_suffix(":443").unwrap_or(host);
        Some(format!("{shown}: {why}, {requests} to retry"))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.retrying.hosts().get_mut(self.host) {
            known.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_line_counts_who_waits_and_comes_now_and_then() {
        let retrying = Retrying::default();
        let why = HttpError::new(ErrorKind::Status(502), "502 Bad Gateway");
        let host = "ghcr.io:443";
        assert_eq!(retrying.line(host, &why), None);
        let (first, _second) = (retrying.wait(host), retrying.wait(host));
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
