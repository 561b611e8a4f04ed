//! What a transport is made from: limits, proxies, and the rules of each host.

use super::private_targets::PrivateTargets;
use super::proxy::ProxyRules;
use super::tls::TlsProfile;
use landfall_model::report::Progress;
use landfall_model::{Limits, Shard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a site for one `host` or `host:port`.
#[derive(Debug, Clone, Default)]
pub struct HostRule {
    /// Certificate authorities and the client certificate.
    pub tls: TlsProfile,
    /// Speak plain http: the flag or the site says so.
    pub plain_http: bool,
    /// The site has credentials for the host, so it is never probed for plain http.
    pub has_credentials: bool,
    /// The most requests in flight, in place of [`Limits::per_host`].
    pub max_concurrent: Option<usize>,
}

/// The settings that a [`Transport`](crate::Transport) is made from.
pub struct TransportConfig {
    /// Timeouts, numbers of attempts, and sizes.
    pub limits: Limits,
    /// Which of several runners this is. Each gets its share of the requests that an upstream host
    /// may get at once.
    pub shard: Shard,
    /// Proxies and the hosts that are reached without one.
    pub proxies: ProxyRules,
    /// Private hosts that responses of public hosts may lead to.
    pub private_targets: PrivateTargets,
    /// PEM file of a certificate authority that is trusted for every host behind a proxy.
    pub proxy_ca: Option<PathBuf>,
    /// Rules of single hosts, by `host` or `host:port`.
    pub hosts: BTreeMap<String, HostRule>,
    /// Where warnings and waits are shown.
    pub progress: Arc<dyn Progress>,
}
