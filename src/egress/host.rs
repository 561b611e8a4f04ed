//! A host that the connected side must reach: its address, the evidence for it, its purpose and
//! role; and how two lists of hosts differ.

use super::pattern::EgressPattern;
use landfall_item::lockfile::Endpoint;
use landfall_model::document::nearest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A host that the connected side must reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EgressHost {
    /// A DNS name or address. The host of an endpoint, or a host from a service's documentation,
    /// may begin with `*.` for all names below.
    pub host: EgressPattern,
    /// The TCP port of the host.
    pub port: u16,
    /// `https`, `http`, or `tcp` if only the port is known.
    pub scheme: String,
    /// The evidence for the host.
    pub known: HostEvidence,
    /// The purposes of the host, sorted.
    pub why: Vec<String>,
    /// The roles of the machines that need it, if it is an endpoint of only some roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The proxy that it is reached through, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The result of a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reachability>,
    /// The reason why the probe failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `added` or `removed`, in a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<HostChange>,
}

/// The evidence for a host in the list, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(derive_more::Display)]
#[display(rename_all = "lowercase")]
pub(crate) enum HostEvidence {
    /// An earlier run contacted it.
    Observed,
    /// The lock names it, or the operator of a registry in the lock documents it; no run has
    /// contacted it yet.
    Predicted,
    /// The manifests name it as an endpoint.
    Declared,
}

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(derive_more::Display)]
#[display(rename_all = "lowercase")]
pub(crate) enum Reachability {
    /// It returned the requested content.
    Reached,
    /// It answered, but not with the requested content.
    Fails,
    /// It was not reached, or access was refused: by a proxy or firewall, or with 403.
    Refused,
}

/// The difference between a newer and an older list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(derive_more::Display)]
#[display(rename_all = "lowercase")]
pub(crate) enum HostChange {
    /// Only the newer list has the host.
    Added,
    /// Only the older list has the host.
    Removed,
}

impl EgressHost {
    /// `host:port`, with brackets around an IPv6 address.
    pub(crate) fn address(&self) -> String {
        match &self.host {
            EgressPattern::Address(address) => SocketAddr::new(*address, self.port).to_string(),
            name => format!("{name}:{}", self.port),
        }
    }

    /// `added` or `removed`; empty outside of a comparison.
    pub(crate) fn change_word(&self) -> String {
        let change = self.change.as_ref();
        change.map(ToString::to_string).unwrap_or_default()
    }
}

/// Returns the hosts that only one of the two lists has, each with its change. Hosts with the same
/// name and port are equal: another reason or scheme does not change a firewall.
pub(crate) fn diff(old: Vec<EgressHost>, new: Vec<EgressHost>) -> Vec<EgressHost> {
    let old_addresses: BTreeSet<_> = old.iter().map(host_and_port).collect();
    let new_addresses: BTreeSet<_> = new.iter().map(host_and_port).collect();
    let mut changed = Vec::new();
    for row in new {
        if !old_addresses.contains(&host_and_port(&row)) {
            changed.push(EgressHost {
                change: Some(HostChange::Added),
                ..row
            });
        }
    }
    for row in old {
        if !new_addresses.contains(&host_and_port(&row)) {
            changed.push(EgressHost {
                change: Some(HostChange::Removed),
                ..row
            });
        }
    }
    changed.sort_by_key(host_and_port);
    changed
}

fn host_and_port(row: &EgressHost) -> (String, u16) {
    (row.host.to_string(), row.port)
}

/// Reads the hosts of a list that `--format json` or `--output json` printed. `None` for any other
/// text.
pub(crate) fn read_list(text: &str) -> Option<Vec<EgressHost>> {
    let document: Value = serde_json::from_str(text).ok()?;
    // the report of `--output json` has the list as one of its members
    let list = document.get("egress").unwrap_or(&document);
    Vec::deserialize(list.get("hosts")?).ok()
}

// The errors of `landfall egress`.

/// The role of the machine that runs landfall.
pub(super) const OWN_ROLE: &str = "landfall";

/// The role of the machines for which hosts are listed.
#[derive(Debug)]
pub(crate) struct EgressRole(String);

impl EgressRole {
    /// Returns the role `name`, or the reason why neither landfall nor an endpoint has it.
    pub(crate) fn new(name: &str, endpoints: &[Endpoint]) -> Result<EgressRole, String> {
        let named = endpoints.iter().flat_map(|endpoint| &endpoint.from);
        let roles: BTreeSet<&str> = named.map(String::as_str).chain([OWN_ROLE]).collect();
        if roles.contains(name) {
            return Ok(EgressRole(name.to_owned()));
        }
        let near = nearest(name, roles.iter().copied())
            .map(|near| format!("did you mean {near}? "))
            .unwrap_or_default();
        let all = roles.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!(
            "there is no role {name}: {near}known roles are {all}"
        ))
    }

    /// Whether it is the machine that runs landfall, which needs the hosts of the lock.
    pub(crate) fn is_own(&self) -> bool {
        self.0 == OWN_ROLE
    }

    /// Whether machines of this role need the endpoint.
    pub(super) fn needs(&self, endpoint: &Endpoint) -> bool {
        endpoint.is_for(&self.0)
    }

    /// Whether machines of this role need a host of an older list.
    pub(crate) fn needs_host(&self, host: &EgressHost) -> bool {
        if host.from.is_empty() {
            // an endpoint without roles is one of all machines, and a host of the lock is
            // landfall's
            return self.is_own() || host.known == HostEvidence::Declared;
        }
        host.from.contains(&self.0)
    }
}

// The kinds of content that the hosts of a lock serve.

/// The kind of content that a host of the lock serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceKind {
    Registry,
    Files,
    /// The index of a chart repository, the discovery document of a registry of providers, or a
    /// transparency log: `lock` and `update` request it, but a pull does not.
    Index,
}

impl SourceKind {
    pub(super) fn reason(self, name: &str) -> String {
        match self {
            SourceKind::Registry => format!("images of {name}"),
            SourceKind::Files => format!("files of {name}"),
            SourceKind::Index => format!("indexes of {name}"),
        }
    }
}
