//! Records every host that landfall contacts: port, purpose, bytes, requests, proxy, and the origin that a mirror
//! replaces.

use crate::report::HostUse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What a host is contacted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Distribution API.
    Registry,
    /// A plain file.
    File,
    /// A token realm.
    Token,
    /// A redirect named it.
    Redirect,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Registry => "registry",
            Purpose::File => "file",
            Purpose::Token => "token",
            Purpose::Redirect => "redirect",
        }
    }
}

type Key = (String, u16, Option<String>, Option<String>);

/// The record of all traffic of one run.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<Key, Line>>);

#[derive(Debug, Default)]
struct Line {
    bytes: u64,
    requests: u64,
    purposes: BTreeSet<Purpose>,
}

/// Names a line of the ledger, so that body bytes can be added to it.
#[derive(Debug, Clone)]
pub struct Entry(Key);

impl Ledger {
    /// Records one request.
    pub fn request(
        &self,
        host: &str,
        port: u16,
        origin: Option<String>,
        via: Option<String>,
        purpose: Purpose,
    ) -> Entry {
        let entry = self.contact(host, port, origin, via, purpose);
        if let Ok(mut lines) = self.0.lock()
            && let Some(line) = lines.get_mut(&entry.0)
        {
            line.requests += 1;
        }
        entry
    }

    /// Records that a host was contacted, by something that is no HTTP request.
    pub fn contact(
        &self,
        host: &str,
        port: u16,
        origin: Option<String>,
        via: Option<String>,
        purpose: Purpose,
    ) -> Entry {
        let key = (host.to_owned(), port, origin, via);
        if let Ok(mut lines) = self.0.lock() {
            lines.entry(key.clone()).or_default().purposes.insert(purpose);
        }
        Entry(key)
    }

    /// Records body bytes, sent or received.
    pub fn bytes(&self, entry: &Entry, count: u64) {
        if let Ok(mut lines) = self.0.lock()
            && let Some(line) = lines.get_mut(&entry.0)
        {
            line.bytes += count;
        }
    }

    /// The record, sorted by host.
    pub fn hosts(&self) -> Vec<HostUse> {
        let lines = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lines
            .iter()
            .map(|((host, port, origin, via), line)| HostUse {
                host: host.clone(),
                port: *port,
                origin: origin.clone(),
                via: via.clone(),
                bytes: line.bytes,
                requests: line.requests,
                why: line.purposes.iter().map(|purpose| purpose.as_str()).collect::<Vec<_>>().join(","),
            })
            .collect()
    }
}
