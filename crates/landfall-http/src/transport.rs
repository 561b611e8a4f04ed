//! The transport: the state that all requests of a run share.

use crate::clients::TlsProfile;
use crate::connect::ProbedProtocol;
use crate::error::host_port;
use crate::host_limiter::HostLimiter;
use crate::ledger::Ledger;
use crate::lost_hosts::LostHosts;
use crate::private_targets::PrivateTargets;
use crate::proxy::{ProxyRules, ProxyUrl};
use crate::proxy_sign_in::{ProxySignIn, ProxySignIns};
use crate::registry_scheme::OnceMap;
use crate::retry::RetryNotices;
use landfall_model::report::{Progress, SilentProgress};
use landfall_model::{Digest, Limits, Shard, locked};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use url::Url;

/// The addresses to which a client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AddressScope {
    Any,
    /// Addresses of the public internet, and private ones that the site allows for this port. A
    /// resolver does not get the port, so each port has a client of its own.
    Public {
        port: u16,
    },
}

/// The settings of a client. Clients with different settings must not share connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ClientKey {
    pub(super) tls: TlsProfile,
    /// The URL of the proxy, without its account.
    pub(super) proxy: Option<String>,
    /// The digest of the account at the proxy, so that no password can be printed.
    pub(super) proxy_account: Option<Digest>,
    pub(super) scope: AddressScope,
}

/// Sends all requests of a run. Cheap to clone; all clones share connections, limits and the
/// ledger.
#[derive(Clone)]
pub struct Transport(pub(super) Arc<TransportState>);

/// The state that the clones of a [`Transport`] share. Hosts are keys of the form `host:port`,
/// unless a field says otherwise.
#[derive(Default)]
pub(super) struct TransportState {
    pub(super) config: TransportConfig,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clients: Mutex<HashMap<ClientKey, reqwest::Client>>,
    limiters: Mutex<HashMap<String, Arc<HostLimiter>>>,
    /// Hosts that belong to the user, set by [`Transport::add_own_host`].
    own_hosts: Mutex<HashSet<String>>,
    /// The protocols of hosts that were probed for plain http, by the host as references write it.
    pub(super) protocols: OnceMap<String, ProbedProtocol>,
    sign_ins: ProxySignIns,
    /// Hosts that answer `Range` wrongly.
    pub(super) wrong_ranges: Mutex<HashSet<String>>,
    pub(super) lost_hosts: LostHosts,
    pub(super) retrying: RetryNotices,
    pub(super) activity: Activity,
    /// Hosts without ports, or upstreams of mirrors, whose rate limit was shown to people.
    pub(super) rate_limits: Mutex<HashSet<String>>,
    /// The hosts of URLs in files of public hosts, each with the public host that named it.
    pub(super) named_hosts: Mutex<HashMap<String, String>>,
    /// Hosts that answered, and whether they are on the public internet.
    pub(super) public_hosts: Mutex<HashMap<String, bool>>,
    /// The lines that [`Transport::note_once`] has shown.
    noted: Mutex<HashSet<String>>,
}

impl Transport {
    /// Creates a transport, which has contacted no host yet.
    pub fn new(config: TransportConfig) -> Transport {
        Transport(Arc::new(TransportState {
            config,
            ..TransportState::default()
        }))
    }

    /// Returns the record of the contacted hosts.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Returns the counter of requests, bodies, pauses and long local work under way.
    pub fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// Returns the limits of this run, as flags and site set them.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Returns the receiver of warnings and of notes about waits.
    pub fn progress(&self) -> &Arc<dyn Progress> {
        &self.0.config.progress
    }

    /// Shows `line` to people, unless this run has shown it before.
    pub fn note_once(&self, line: &str) {
        if locked(&self.0.noted).insert(line.to_owned()) {
            self.progress().note(line);
        }
    }

    pub(super) fn proxy_sign_in(&self, proxy: &ProxyUrl) -> Arc<ProxySignIn> {
        self.0.sign_ins.for_proxy(proxy)
    }

    /// Returns the proxies of this run, and their exceptions.
    pub fn proxies(&self) -> &ProxyRules {
        &self.0.config.proxies
    }

    /// Returns the TLS settings for the host of `url` on this route.
    pub(super) fn tls_profile(&self, url: &Url, route: Option<&ProxyUrl>) -> TlsProfile {
        let mut tls = self
            .host_rule(url)
            .map(|rule| rule.tls.clone())
            .unwrap_or_default();
        // A proxy that intercepts TLS signs the certificates of all hosts behind it.
        if route.is_some() {
            tls.ca.extend(self.0.config.proxy_ca.clone());
        }
        tls
    }

    /// Whether landfall verifies the certificate of this URL's host.
    pub fn checks_certificate(&self, url: &Url) -> bool {
        !self.host_rule(url).is_some_and(|rule| rule.tls.skip_verify)
    }

    /// Records that the host of `url` belongs to the user: a destination registry, or a store. Each
    /// shard may send as many requests to it at once as a run without shards. Must be called before
    /// the first request to the host, which creates its limiter.
    pub fn add_own_host(&self, url: &Url) {
        locked(&self.0.own_hosts).insert(host_port(url));
    }

    /// Returns the limiter of the host of `url`.
    pub(super) fn limiter(&self, url: &Url) -> Arc<HostLimiter> {
        let host = host_port(url);
        // the usual case: the rules of a host are only looked up for its first request
        if let Some(limiter) = locked(&self.0.limiters).get(&host) {
            return limiter.clone();
        }
        let slots = self
            .host_rule(url)
            .and_then(|rule| rule.max_concurrent)
            .unwrap_or(self.limits().per_host);
        // an upstream host has one limit for all shards together
        let is_own = locked(&self.0.own_hosts).contains(&host);
        let slots = if is_own {
            slots
        } else {
            self.0.config.shard.share(slots)
        };
        // another task may have created it since the look-up above
        locked(&self.0.limiters)
            .entry(host)
            .or_insert_with(|| Arc::new(HostLimiter::new(slots)))
            .clone()
    }

    /// Returns the rule of a host. A rule for `host:port` has precedence over one for `host`.
    fn host_rule(&self, url: &Url) -> Option<&HostRule> {
        let hosts = &self.0.config.hosts;
        hosts
            .get(&host_port(url))
            .or_else(|| hosts.get(url.host_str()?))
    }
}

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

impl Default for TransportConfig {
    /// The settings of a machine without proxies, shards and rules of hosts.
    fn default() -> TransportConfig {
        TransportConfig {
            limits: Limits::default(),
            shard: Shard::default(),
            proxies: ProxyRules::default(),
            private_targets: PrivateTargets::default(),
            proxy_ca: None,
            hosts: BTreeMap::default(),
            progress: Arc::new(SilentProgress),
        }
    }
}

/// Counts what a run waits for: requests in flight, bodies, pauses before another attempt, and long
/// local work such as the writing of git packs. Requests, bodies and pauses have time limits, so
/// they end by themselves.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    busy: Arc<AtomicUsize>,
    ended: Arc<AtomicU64>,
}

/// Counts a request, a body, a pause or local work as under way until it is dropped.
#[derive(Debug)]
pub struct ActivityGuard(Activity);

/// The counts of an [`Activity`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivitySnapshot {
    /// The number of requests, bodies, pauses and pieces of local work under way.
    pub busy: usize,
    ended: u64,
}

impl Activity {
    /// Counts a request, a body, a pause or local work as under way until the guard is dropped.
    pub fn busy(&self) -> ActivityGuard {
        self.busy.fetch_add(1, Ordering::Relaxed);
        ActivityGuard(self.clone())
    }

    /// Returns the current counts. Two equal snapshots mean that nothing began or ended between
    /// them.
    pub fn snapshot(&self) -> ActivitySnapshot {
        ActivitySnapshot {
            busy: self.busy.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
        }
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let Activity { busy, ended } = &self.0;
        ended.fetch_add(1, Ordering::Relaxed);
        busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SlotClass;
    use futures_util::FutureExt;

    /// The number of ordinary requests to this host that may be in flight.
    fn slots(transport: &Transport, url: &str) -> usize {
        let limiter = transport.limiter(&Url::parse(url).unwrap());
        let mut slots = Vec::new();
        while let Some(slot) = limiter.acquire(SlotClass::Ordinary).now_or_never() {
            slots.push(slot);
        }
        slots.len()
    }

    #[tokio::test]
    async fn a_shard_gets_its_share_of_an_upstream_limit_but_the_whole_limit_of_an_own_host() {
        let rule = |limit| HostRule {
            max_concurrent: Some(limit),
            ..HostRule::default()
        };
        let limits = Limits {
            per_host: 12,
            ..Limits::default()
        };
        let transport = Transport::new(TransportConfig {
            shard: Shard::new(2, 4).unwrap(),
            hosts: [
                ("many.test".to_owned(), rule(32)),
                ("few.test:5000".to_owned(), rule(3)),
            ]
            .into(),
            limits,
            ..TransportConfig::default()
        });
        transport.add_own_host(&Url::parse("https://own.test").unwrap());
        let hosts = [
            "https://any.test/v2/",
            "https://many.test",
            "http://few.test:5000",
            "https://own.test/v2/",
        ];
        assert_eq!(hosts.map(|host| slots(&transport, host)), [3, 8, 1, 12]);
    }
}
