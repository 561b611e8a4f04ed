//! Endpoints: hosts that cannot be mirrored and must stay reachable.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A host that cannot be mirrored and must stay reachable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Host name or IP address; a leading `*.` matches every subdomain.
    pub host: String,
    /// The TCP port that must be reachable.
    pub port: u16,
    /// What the endpoint is needed for. Several reasons are joined by `; `.
    pub why: String,
    /// The roles of the machines that need it, sorted; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
}

impl Endpoint {
    /// Whether machines of this role need the endpoint.
    pub fn is_for(&self, role: &str) -> bool {
        self.from.is_empty() || self.from.iter().any(|one| one == role)
    }

    /// Merges `other`, an endpoint with the same host and port: the reasons and the roles of both.
    pub fn join(&mut self, other: &Endpoint) {
        let mut reasons: Vec<&str> = self.why.split("; ").chain(other.why.split("; ")).collect();
        reasons.sort_unstable();
        reasons.dedup();
        self.why = reasons.join("; ");
        // an empty list means all roles, which include those of the other list
        if self.from.is_empty() || other.from.is_empty() {
            self.from.clear();
            return;
        }
        self.from.extend_from_slice(&other.from);
        self.from.sort_unstable();
        self.from.dedup();
    }
}

/// `host:port`, with brackets around an IPv6 address.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A host and port that two endpoints share, for messages.
pub(super) fn duplicate(endpoints: &[Endpoint]) -> Option<String> {
    let mut seen = BTreeSet::new();
    endpoints
        .iter()
        .find(|endpoint| !seen.insert((&endpoint.host, endpoint.port)))
        .map(|endpoint| format!("the endpoint {endpoint}"))
}
