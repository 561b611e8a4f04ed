//! Asks each host that a lock names for one token, one manifest and the first byte of one blob or
//! file, through all redirects. A refusal ends one host, not the probe.

use super::EgressError;
use super::host::{EgressHost, Reachability};
use super::needed::{SourceHost, sources};
use super::pattern::EgressPattern;
use futures_util::StreamExt;
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{Upstreams, expect_file, get_file};
use landfall_content::{EntryPart, PartSource, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::report::HostUse;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

/// What a probe found of the hosts that did not give what they were asked for, by host and port.
#[derive(Debug, Default)]
pub(crate) struct Probed {
    failures: BTreeMap<(EgressPattern, u16), (Reachability, String)>,
    /// What is not known behind a refusal.
    pub notes: Vec<String>,
}

/// Asks each host that `lock` names.
///
/// # Errors
/// A name of the lock that no request can be sent for. What hosts answer is no error.
pub(crate) async fn probe(
    lock: &Lock,
    sessions: &Arc<RegistrySessions>,
) -> Result<Probed, EgressError> {
    let sources: Vec<SourceHost> = sources(lock, sessions)?.into_values().collect();
    let jobs = sessions.transport().limits().jobs;
    let found = run_concurrently(sources.len(), jobs, |at| ask(&sources[at], sessions)).await;
    let mut probed = Probed::default();
    for (source, errors) in sources.iter().zip(found) {
        for error in errors {
            let (url, reach) = (
                failing_url(&error).unwrap_or(source.url.clone()),
                reach_of(&error),
            );
            let host = url.host_str().unwrap_or_default().to_owned();
            if reach == Reachability::Refused {
                probed.notes.push(format!(
                    "{}: {host} does not let it on; hosts that it names come to light when that is allowed",
                    source.name
                ));
            }
            // a host that is none was not asked, and stands in no list
            let Ok(host) = EgressPattern::exact(&host) else {
                continue;
            };
            let key = (host, url.port_or_known_default().unwrap_or_default());
            let (known, reason) = probed
                .failures
                .entry(key)
                .or_insert((reach, error.to_string()));
            if reach > *known {
                (*known, *reason) = (reach, error.to_string());
            }
        }
    }
    Ok(probed)
}

impl Probed {
    /// Writes to each host of the list what the probe found; `hosts` are those that it contacted.
    pub(crate) fn apply(&self, list: &mut [EgressHost], hosts: &[HostUse]) {
        for row in list {
            if let Some((reach, reason)) = self.failures.get(&(row.host.clone(), row.port)) {
                (row.reach, row.reason) = (Some(*reach), Some(reason.clone()));
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

    /// Whether every host gave what it was asked for.
    pub(crate) fn is_good(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Asks one host. What it does not give is an error of the list.
async fn ask(source: &SourceHost, sessions: &Arc<RegistrySessions>) -> Vec<HttpError> {
    let mut errors = Vec::new();
    for part in source.samples.iter().flatten() {
        if let Err(error) = first_byte(part, sessions).await {
            let ends = reach_of(&error) == Reachability::Refused;
            errors.push(error);
            if ends {
                break;
            }
        }
    }
    errors
}

/// The first byte of a part, as a pull would ask for it.
async fn first_byte(part: &EntryPart, sessions: &Arc<RegistrySessions>) -> Result<(), HttpError> {
    if let Some(url) = part.origin.url() {
        let response = get_file(sessions, url, Some("bytes=0-0".into())).await?;
        return expect_file(response, url).await.map(drop);
    }
    let mut opened = Upstreams(sessions.clone()).open(part, 0).await?;
    opened.stream.next().await.transpose().map(drop)
}

/// The URL that failed: of what caused the error, where that knows it better.
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

/// Whether a host, or somebody before it, refused, or it answered and lacks what it was asked for.
fn reach_of(error: &HttpError) -> Reachability {
    match (error.kind, error.status) {
        (ErrorKind::Proxy(_) | ErrorKind::Network | ErrorKind::GivenUp | ErrorKind::Local, _)
        | (ErrorKind::Denied, Some(403)) => Reachability::Refused,
        _ => Reachability::Fails,
    }
}
