//! Records every host that landfall contacts: port, scheme, purposes, bytes, requests, the proxy,
//! the upstream that a mirror replaces, and the hosts whose responses named this host.

use crate::rate_limit::{clock_offset, median};
use landfall_model::locked;
use landfall_model::report::HostUse;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use url::Url;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display(rename_all = "kebab-case")]
pub enum RequestPurpose {
    /// A request of the distribution API.
    Registry,
    /// A request for a file.
    File,
    /// A request for a token.
    Token,
    /// A request to the target of a redirect, if the target has another origin.
    Redirect,
    /// A request to an object store.
    ObjectStore,
}

/// The key of a line of the ledger: contacts that differ in any field have separate lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contact {
    host: String,
    port: u16,
    origin: Option<String>,
    via: Option<String>,
    scheme: String,
}

impl Contact {
    /// Returns the contact with the host of `url` through the proxy `via`. If there is an
    /// `origin`, the host is a mirror of that upstream.
    pub fn new(url: &Url, origin: Option<String>, via: Option<String>) -> Contact {
        Contact {
            host: url.host_str().unwrap_or("?").to_owned(),
            port: url.port_or_known_default().unwrap_or(0),
            origin,
            via,
            scheme: url.scheme().to_owned(),
        }
    }
}

/// The record of all traffic of one run.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<Contact, LedgerLine>>);

#[derive(Debug, Default)]
struct LedgerLine {
    bytes: u64,
    requests: u64,
    purposes: BTreeSet<RequestPurpose>,
    named_by: BTreeSet<String>,
    answered: bool,
    /// The largest number of seconds by which a date of this host was ahead of this machine's
    /// clock.
    clock_offset: Option<i64>,
}

impl Ledger {
    /// Records one request. `named_by` is the `host:port` whose response named the host, as for a
    /// redirect or a token realm.
    pub fn request(&self, contact: &Contact, purpose: RequestPurpose, named_by: Option<&str>) {
        let mut lines = locked(&self.0);
        let line = lines.entry(contact.clone()).or_default();
        line.purposes.insert(purpose);
        // counted when the request is sent, so that the report contains unanswered requests too
        line.requests += 1;
        line.named_by.extend(named_by.map(str::to_owned));
    }

    /// Records that `named_by` (`host:port`) led to the requests so far to the host of `url`.
    pub fn add_named_by(&self, url: &Url, named_by: &str) {
        let (host, port) = (url.host_str(), url.port_or_known_default());
        let mut lines = locked(&self.0);
        let of_host = lines
            .iter_mut()
            .filter(|(contact, _)| host == Some(&*contact.host) && port == Some(contact.port));
        for (_, line) in of_host {
            line.named_by.insert(named_by.to_owned());
        }
    }

    /// Records a contact that is not an HTTP request, such as a probe.
    pub fn contact(&self, contact: Contact, purpose: RequestPurpose) {
        let mut lines = locked(&self.0);
        lines.entry(contact).or_default().purposes.insert(purpose);
    }

    /// Adds body bytes, sent or received, to the line of a request.
    pub fn bytes(&self, contact: &Contact, count: u64) {
        if let Some(line) = locked(&self.0).get_mut(contact) {
            line.bytes += count;
        }
    }

    /// Records a response: whether the host itself answered, and its clock, if there is a date.
    pub(super) fn response(&self, contact: &Contact, status: StatusCode, headers: &HeaderMap) {
        let offset = clock_offset(headers, SystemTime::now());
        // a proxy or firewall on the way may send these instead of the host
        let is_refusal = status.is_server_error()
            || [
                StatusCode::FORBIDDEN,
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
            ]
            .contains(&status);
        if let Some(line) = locked(&self.0).get_mut(contact) {
            line.answered |= !is_refusal;
            // a cache without `Age` may send an old date, so the largest offset counts
            line.clock_offset = line.clock_offset.max(offset);
        }
    }

    /// Returns the number of seconds by which the servers' clocks are ahead of this machine's,
    /// negative if they are behind: the median over all lines. `None` if no server sent a date.
    pub fn clock_offset(&self) -> Option<i64> {
        let lines = locked(&self.0);
        median(
            lines
                .values()
                .filter_map(|line| line.clock_offset)
                .collect(),
        )
    }

    /// Returns all lines, sorted by host.
    pub fn hosts(&self) -> Vec<HostUse> {
        locked(&self.0)
            .iter()
            .map(|(contact, line)| HostUse {
                host: contact.host.clone(),
                port: contact.port,
                scheme: contact.scheme.clone(),
                origin: contact.origin.clone(),
                via: contact.via.clone(),
                bytes: line.bytes,
                requests: line.requests,
                why: line
                    .purposes
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(","),
                named_by: line.named_by.iter().cloned().collect(),
                answered: line.answered,
            })
            .collect()
    }
}

// Formats values for the log. URLs are formatted by [`redacted_url`](crate::redacted_url).

/// Rounds a duration down to whole milliseconds: nanoseconds make a log hard to read.
pub(super) fn rounded(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64)
}
