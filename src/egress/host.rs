//! A host that the connected side must reach: its address, the evidence for it, and its purpose.

use super::pattern::EgressPattern;
use serde::{Deserialize, Serialize};
use std::fmt;
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
}

// `pad` rather than `write_str`, so that the columns of the text format are aligned
macro_rules! display_words {
    ($($kind:ident { $($variant:ident => $word:literal),* })*) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($kind::$variant => $word),* })
            }
        })*
    };
}
display_words! {
    HostEvidence { Observed => "observed", Predicted => "predicted", Declared => "declared" }
    Reachability { Reached => "reached", Fails => "fails", Refused => "refused" }
    HostChange { Added => "added", Removed => "removed" }
}
