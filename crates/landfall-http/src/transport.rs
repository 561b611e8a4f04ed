//! The transport: what all requests of a run share.

use super::activity::Activity;
use super::error::host_port;
use super::host_limiter::{HostLimiter, SlotClass};
use super::ledger::Ledger;
use super::lost_hosts::LostHosts;
use super::once_map::OnceMap;
use super::probe::Protocol;
use super::proxy::{ProxyRules, ProxyUrl};
use super::proxy_sign_in::{ProxySignIn, ProxySignIns};
use super::retry_notices::Retrying;
use super::settings::{HostRule, TransportConfig};
use super::tls::TlsProfile;
use landfall_model::Limits;
use landfall_model::report::Progress;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Which addresses a client connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// All.
    Any,
    /// Those of the public internet, and private ones that the site allows.
    Public,
}

/// What a client is told apart by: its trust, its proxy, its reach.
pub(super) type ClientKey = (TlsProfile, Option<String>, Reach);

/// The transport. Cheap to clone; all clones share connections, limits and the ledger.
#[derive(Clone)]
pub struct Transport(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) config: TransportConfig,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clients: Mutex<HashMap<ClientKey, reqwest::Client>>,
    limiters: Mutex<HashMap<(String, SlotClass), Arc<HostLimiter>>>,
    /// Hosts of our own side, `host:port`.
    own: Mutex<HashSet<String>>,
    /// What probed hosts speak.
    pub(super) protocols: OnceMap<String, Protocol>,
    sign_ins: ProxySignIns,
    /// Hosts whose answers to ranges are wrong.
    pub(super) wrong_ranges: Mutex<HashSet<String>>,
    /// Hosts that do not answer.
    pub(super) lost_hosts: LostHosts,
    /// Requests that wait until they are sent again.
    pub(super) retrying: Retrying,
    /// What is under way.
    pub(super) activity: Activity,
    /// Hosts whose rate limit was shown.
    pub(super) rate_limits: Mutex<HashSet<String>>,
    /// Hosts that files of public hosts named, and those hosts, by `host:port`.
    pub(super) led_by: Mutex<HashMap<String, String>>,
    /// Whether the hosts that answered, by `host:port`, are of the public internet.
    pub(super) public_hosts: Mutex<HashMap<String, bool>>,
    /// What was told once.
    noted: Mutex<HashSet<String>>,
}

impl Transport {
    /// A transport that has contacted no host.
    pub fn new(config: TransportConfig) -> Transport {
        Transport(Arc::new(Inner {
            config,
            ledger: Arc::default(),
            clients: Mutex::default(),
            limiters: Mutex::default(),
            own: Mutex::default(),
            protocols: OnceMap::default(),
            sign_ins: ProxySignIns::default(),
            wrong_ranges: Mutex::default(),
            lost_hosts: LostHosts::default(),
            retrying: Retrying::default(),
            activity: Activity::default(),
            rate_limits: Mutex::default(),
            led_by: Mutex::default(),
            public_hosts: Mutex::default(),
            noted: Mutex::default(),
        }))
    }

    /// The record of hosts.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// What this run waits for.
    pub fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// Bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Shows warnings.
    pub fn progress(&self) -> &Arc<dyn Progress> {
        &self.0.config.progress
    }

    /// Tells `line` to whoever watches, unless this run has told it before.
    pub fn note_once(&self, line: &str) {
        if self
            .0
            .noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(line.to_owned())
        {
            self.progress().note(line);
        }
    }

    /// The sign-in to this proxy.
    pub(super) fn proxy_sign_in(&self, proxy: &ProxyUrl) -> Arc<ProxySignIn> {
        self.0.sign_ins.of(proxy)
    }

    /// Proxies and their exceptions.
    pub fn proxies(&self) -> &ProxyRules {
        &self.0.config.proxies
    }

    /// The TLS settings for the host of `url` on this route.
    pub(super) fn tls_profile(&self, url: &Url, route: Option<&ProxyUrl>) -> TlsProfile {
        let mut tls = self
            .rule(url)
            .map(|rule| rule.tls.clone())
            .unwrap_or_default();
        if route.is_some() {
            tls.ca.extend(self.0.config.proxy_ca.clone());
        }
        tls
    }

    /// Whether landfall checks the certificate of this URL's host.
    pub fn checks_certificate(&self, url: &Url) -> bool {
        !self.rule(url).is_some_and(|rule| rule.tls.skip_verify)
    }

    /// Takes note that the host of `url` is of our own side, a registry that is delivered to or a
    /// store: every shard may ask as much of it as a single runner. To be said before it is asked
    /// for something.
    pub fn add_own_host(&self, url: &Url) {
        self.0
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(host_port(url));
    }

    /// The limiter of the host of `url` for requests of a class.
    pub(super) fn limiter(&self, url: &Url, class: SlotClass) -> Arc<HostLimiter> {
        let host = host_port(url);
        let limits = self.limits();
        let slots = self
            .rule(url)
            .and_then(|rule| rule.max_concurrent)
            .unwrap_or(limits.per_host);
        let is_own = self
            .0
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&host);
        let slots = if is_own {
            slots
        } else {
            self.0.config.shard.share(slots)
        };
        let mut limiters = self
            .0
            .limiters
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let ordinary = limiters.entry((host.clone(), SlotClass::Ordinary));
        let ordinary = ordinary.or_insert_with(|| Arc::new(HostLimiter::new(slots)));
        if class == SlotClass::Ordinary {
            return ordinary.clone();
        }
        let beside = ordinary.beside();
        limiters
            .entry((host, class))
            .or_insert_with(|| Arc::new(beside))
            .clone()
    }

    fn rule(&self, url: &Url) -> Option<&HostRule> {
        let hosts = &self.0.config.hosts;
        hosts
            .get(&host_port(url))
            .or_else(|| hosts.get(url.host_str()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateTargets;
    use futures_util::FutureExt;
    use landfall_model::Shard;
    use landfall_model::report::SilentProgress;

    /// How many requests to this host may run at once.
    fn at_once(transport: &Transport, url: &str) -> usize {
        let limiter = transport.limiter(&Url::parse(url).unwrap(), SlotClass::Ordinary);
        let mut slots = Vec::new();
        while let Some(slot) = limiter.slot().now_or_never() {
            slots.push(slot);
        }
        slots.len()
    }

    #[tokio::test]
    async fn of_the_limits_of_upstream_a_shard_takes_its_share_and_of_its_own_side_all() {
        let rule = |most| HostRule {
            max_concurrent: Some(most),
            ..HostRule::default()
        };
        let transport = Transport::new(TransportConfig {
            limits: Limits {
                per_host: 12,
                ..Limits::default()
            },
            shard: Shard::new(2, 4).unwrap(),
            proxies: ProxyRules::default(),
            private_targets: PrivateTargets::default(),
            proxy_ca: None,
            hosts: [
                ("many.test".to_owned(), rule(32)),
                ("few.test:5000".to_owned(), rule(3)),
            ]
            .into(),
            progress: Arc::new(SilentProgress),
        });
        transport.add_own_host(&Url::parse("https://own.test").unwrap());
        let hosts = [
            "https://any.test/v2/",
            "https://many.test",
            "http://few.test:5000",
            "https://own.test/v2/",
        ];
        assert_eq!(hosts.map(|host| at_once(&transport, host)), [3, 8, 1, 12]);
    }
}
