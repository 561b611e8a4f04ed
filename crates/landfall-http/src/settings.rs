//! What a transport is made from: limits, proxies, and the rules of each host.

use super::private_targets::PrivateTargets;
use super::proxy::ProxyRules;
use super::tls::TlsProfile;
use landfall_model::report::Progress;
use landfall_model::{Limits, Shard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of one `host` or `host:port`.
#[derive(Debug, Clone, Default)]
pub struct HostRule {
    /// Trust and client certificate.
    pub tls: TlsProfile,
    /// Speak plain http; the user said so.
    pub plain_http: bool,
    /// The host has credentials, so landfall never probes it for plain http.
    pub has_credentials: bool,
    /// Requests in flight.
    pub max_concurrent: Option<usize>,
}

/// What a [`Transport`] is made from.
pub struct TransportConfig {
    /// Bounds.
    pub limits: Limits,
    /// One of several runners: of what a host may be asked at once it takes its share, unless the
    /// host is our own.
    pub shard: Shard,
    /// Proxies.
    pub proxies: ProxyRules,
    /// Private hosts that answers of public hosts may lead to.
    pub private_targets: PrivateTargets,
    /// Certificate authority to add for every host behind a proxy.
    pub proxy_ca: Option<PathBuf>,
    /// Rules by `host` or `host:port`.
    pub hosts: BTreeMap<String, HostRule>,
    /// Shows warnings and waits.
    pub progress: Arc<dyn Progress>,
}
