//! The settings of a transport: limits, proxies, and the rules of each host.

use super::private_targets::PrivateTargets;
use super::proxy::ProxyRules;
use super::tls::TlsProfile;
use landfall_model::report::Progress;
use landfall_model::{Limits, Shard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings for one `host` or `host:port`, from the site, the flags, the keychain and `certs.d`
/// folders.
#[derive(Debug, Clone, Default)]
pub struct HostRule {
    /// Certificate authorities and the client certificate.
    pub tls: TlsProfile,
    /// Whether the flag or the site selects plain http.
    pub plain_http: bool,
    /// Whether the site or the keychain has credentials for the host. Such a host is never probed
    /// for plain http.
    pub has_credentials: bool,
    /// The maximum number of requests in flight, instead of [`Limits::per_host`].
    pub max_concurrent: Option<usize>,
}

/// The settings of a [`Transport`](crate::Transport).
pub struct TransportConfig {
    /// Timeouts, numbers of attempts, and sizes.
    pub limits: Limits,
    /// The shard of this process. Each shard gets its share of the requests that an upstream host
    /// may get at once.
    pub shard: Shard,
    /// The proxies, and the hosts that are reached without one.
    pub proxies: ProxyRules,
    /// The private hosts that responses of public hosts may lead to.
    pub private_targets: PrivateTargets,
    /// The PEM file of a certificate authority that is trusted for every host that is reached
    /// through a proxy.
    pub proxy_ca: Option<PathBuf>,
    /// The rules of single hosts, by `host` or `host:port`.
    pub hosts: BTreeMap<String, HostRule>,
    /// Receives warnings, and notes about waits.
    pub progress: Arc<dyn Progress>,
}

#[cfg(test)]
impl TransportConfig {
    /// The settings of a machine without proxies, shards and rules of hosts.
    pub(crate) fn direct(limits: Limits) -> TransportConfig {
        TransportConfig {
            limits,
            shard: Shard::default(),
            proxies: ProxyRules::default(),
            private_targets: PrivateTargets::default(),
            proxy_ca: None,
            hosts: BTreeMap::default(),
            progress: Arc::new(landfall_model::report::SilentProgress),
        }
    }
}
