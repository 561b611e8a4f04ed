//! A host that the connected side must reach: its address, how it is known, and what for.

use super::pattern::EgressPattern;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// A host that the connected side must reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EgressHost {
    /// Name or address; of an endpoint, `*.` at the front stands for every name below.
    pub host: EgressPattern,
    /// TCP port.
    pub port: u16,
    /// `https`, `http`, or `tcp` where only the port is known.
    pub scheme: String,
    /// How it is known.
    pub known: HostEvidence,
    /// What it is needed for, sorted.
    pub why: Vec<String>,
    /// The roles of the machines that need it, where it is an endpoint of some alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The proxy that it is reached through, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What a probe found, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reachability>,
    /// The probe's reason, where it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `added` or `removed`, in a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<HostChange>,
}

/// How a host is known; the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HostEvidence {
    /// An earlier run contacted it.
    Observed,
    /// The lock names it; nobody has asked it yet.
    Predicted,
    /// The manifests name it as an endpoint.
    Declared,
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reachability {
    /// It gave what it was asked for.
    Reached,
    /// It answered, and did not give it.
    Fails,
    /// It was not reached, or refused.
    Refused,
}

/// How a newer list differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HostChange {
    /// Only the newer one has it.
    Added,
    /// Only the older one has it.
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

macro_rules! words {
    ($($kind:ident { $($variant:ident => $word:literal),* })*) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($kind::$variant => $word),* })
            }
        })*
    };
}
words! {
    HostEvidence { Observed => "observed", Predicted => "predicted", Declared => "declared" }
    Reachability { Reached => "reached", Fails => "fails", Refused => "refused" }
    HostChange { Added => "added", Removed => "removed" }
}
