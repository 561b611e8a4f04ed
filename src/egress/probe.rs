//! Probes each host that a lock names: requests one token, one manifest and the beginning of one
//! blob or file, or the refs of a git repository. Follows all redirects. A refusal ends the
//! requests to that host, not the probe.

use super::host::{EgressHost, Reachability};
use super::pattern::EgressPattern;
use super::{SourceHost, sources};
use futures_util::StreamExt;
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{Upstreams, expect_file, get_file, list_refs};
use landfall_content::{EntryPart, PartOrigin, PartSource, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::Failure;
use landfall_model::report::HostUse;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

/// The failures that a probe found, by host and port.
#[derive(Debug, Default)]
pub(crate) struct Probed {
    failures: BTreeMap<(EgressPattern, u16), (Reachability, String)>,
    /// Notes about hosts that could not be accessed or were not probed: the further hosts that
    /// their responses would name are not known yet.
    pub notes: Vec<String>,
}

/// Probes each host of `lock`. Failures of hosts are part of the result.
pub(crate) async fn probe(
    lock: &Lock,
    sessions: &Arc<RegistrySessions>,
) -> Result<Probed, Failure> {
    let sources: Vec<SourceHost> = sources(lock, sessions)?.into_values().collect();
    let jobs = sessions.transport().limits().jobs;
    let found =
        run_concurrently(sources.len(), jobs, |at| probe_host(&sources[at], sessions)).await;
    let mut probed = Probed::default();
    for (source, errors) in sources.iter().zip(found) {
        if source.samples.iter().all(Option::is_none) {
            probed.notes.push(format!(
                "{}: not probed, because no item from it could be locked",
                source.name
            ));
        }
        for error in errors {
            let failing = failing_url(&error).unwrap_or_else(|| source.url.clone());
            let host_name = failing.host_str().unwrap_or_default();
            let (url, host, reach) = match EgressPattern::exact(host_name) {
                Ok(host) => (&failing, host, reachability(&error)),
                // A text that is not a host, such as `*.*` in a redirect to `https://*.*/`, was not
                // contacted, and no list contains it. The host that sent it counts as failed.
                Err(_) => {
                    let sender = source.url.host_str().unwrap_or_default();
                    (
                        &source.url,
                        EgressPattern::exact(sender)?,
                        Reachability::Fails,
                    )
                }
            };
            if reach == Reachability::Refused {
                probed.notes.push(format!(
                    "{}: no access to {host_name}; the hosts that its responses name are not known \
                     until it can be accessed",
                    source.name
                ));
            }
            let key = (host, url.port_or_known_default().unwrap_or_default());
            // several hosts of the lock may lead to one failing host: the worst result counts
            let (known, reason) = probed
                .failures
                .entry(key)
                .or_insert((reach, error.to_string()));
            if reach > *known {
                *known = reach;
                *reason = error.to_string();
            }
        }
    }
    Ok(probed)
}

impl Probed {
    /// Sets the result of each listed host that failed or that the probe contacted. `hosts` are the
    /// hosts that the probe contacted.
    pub(crate) fn apply(&self, list: &mut [EgressHost], hosts: &[HostUse]) {
        for row in list {
            if let Some((reach, reason)) = self.failures.get(&(row.host.clone(), row.port)) {
                row.reach = Some(*reach);
                row.reason = Some(reason.clone());
                continue;
            }
            let is_row = |used: &&HostUse| {
                used.port == row.port && EgressPattern::exact(&used.host).as_ref() == Ok(&row.host)
            };
            if hosts.iter().filter(is_row).any(|used| used.requests > 0) {
                row.reach = Some(Reachability::Reached);
            }
        }
    }

    /// Whether every host returned the requested content.
    pub(crate) fn is_good(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Probes one host. Returns the failures.
async fn probe_host(source: &SourceHost, sessions: &Arc<RegistrySessions>) -> Vec<HttpError> {
    let mut errors = Vec::new();
    for part in source.samples.iter().flatten() {
        if let Err(error) = first_byte(part, sessions).await {
            // a proxy or firewall that refuses the host refuses every request to it
            let is_refused = reachability(&error) == Reachability::Refused;
            errors.push(error);
            if is_refused {
                break;
            }
        }
    }
    errors
}

/// Requests a part as a pull does, and reads only its beginning. For a git repository, lists the
/// refs.
async fn first_byte(part: &EntryPart, sessions: &Arc<RegistrySessions>) -> Result<(), HttpError> {
    if let Some(url) = part.origin.url() {
        let response = get_file(sessions, url, Some("bytes=0-0".into())).await?;
        return expect_file(response, url).await.map(drop);
    }
    if let PartOrigin::Git { repository, .. } = &part.origin {
        return list_refs(sessions, &repository.url).await.map(drop);
    }
    let mut opened = Upstreams::new(sessions.clone()).open(part, 0).await?;
    opened.stream.next().await.transpose().map(drop)
}

/// The URL of the failing request. The request may have followed a redirect, so the URL of the
/// innermost cause counts.
fn failing_url(error: &HttpError) -> Option<Url> {
    let mut url = error.url().and_then(|url| Url::parse(url).ok());
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<HttpError>().and_then(HttpError::url);
        url = inner.and_then(|url| Url::parse(url).ok()).or(url);
        cause = error.source();
    }
    url
}

/// Distinguishes a refusal on the way, by a proxy or firewall, from an unexpected response of the
/// host.
fn reachability(error: &HttpError) -> Reachability {
    match (error.kind, error.status) {
        // 403 may come from a proxy on the way or from the host
        (ErrorKind::Proxy(_) | ErrorKind::Network | ErrorKind::GivenUp | ErrorKind::Local, _)
        | (ErrorKind::Denied, Some(403)) => Reachability::Refused,
        _ => Reachability::Fails,
    }
}
