//! Private addresses, and the setting that allows responses of public hosts to lead to some of
//! them.

use crate::connect::resolve;
use crate::error::{ErrorKind, HttpError, find, host_port};
use crate::exchange::HttpRequest;
use crate::no_proxy::{NoProxyEntry, RequestTarget, ineffective_entry};
use crate::proxy::ProxyUrl;
use crate::transport::{AddressScope, Transport};
use landfall_model::{Failure, is_dns_name, locked, without_brackets};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::Url;

/// The key of the site that allows private targets, for messages.
pub(super) const KEY: &str = "privateTargets";

/// The private hosts that responses of public hosts may lead to, by `privateTargets` of a site.
#[derive(Debug, Clone, Default)]
pub struct PrivateTargets(Vec<NoProxyEntry>);

impl PrivateTargets {
    /// Parses entries with the syntax of NO_PROXY: names, addresses and ranges.
    ///
    /// # Errors
    /// If an entry matches no host. The error names the first such entry.
    pub fn new(entries: &[String]) -> Result<PrivateTargets, Failure> {
        let each = entries
            .iter()
            .flat_map(|entry| entry.split(','))
            .map(str::trim);
        for entry in each.filter(|entry| !entry.is_empty()) {
            if let Some(ineffective) = ineffective_entry(entry) {
                let instead = ineffective
                    .instead
                    .map(|instead| format!("; write {instead}"));
                return Err(Failure::usage(format!(
                    "'{entry}' in {KEY} of the site matches no host{}",
                    instead.unwrap_or_default()
                )));
            }
        }
        Ok(PrivateTargets(
            entries
                .iter()
                .flat_map(|entry| NoProxyEntry::list(entry, KEY))
                .collect(),
        ))
    }

    /// Whether an entry matches the host and port of a URL.
    pub(super) fn allow(&self, host: &str, port: u16) -> bool {
        let target = RequestTarget::new(host, port);
        self.0.iter().any(|entry| entry.covers(&target))
    }
}

/// Whether an address is not on the public internet: an address of this machine, its link or a
/// private network (RFC 6890; RFC 1918, 3927, 4193, 6598). An IPv4 address that is embedded in an
/// IPv6 address (RFC 4291, 6052, 3056) is checked as IPv4.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => {
            let own = v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                // site-local, which RFC 3879 withdrew
                || (v6.segments()[0] & 0xffc0) == 0xfec0;
            own || embeds_private_v4(v6)
        }
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    // 100.64.0.0/10, the shared address space of providers (RFC 6598)
    let is_shared = a == 100 && (64..128).contains(&b);
    a == 0 || is_shared || address.is_loopback() || address.is_private() || address.is_link_local()
}

/// The octets of the IPv4 address below a prefix of 48, 56, 64 and 96 bits (RFC 6052, section 2.2).
/// Octet 8 is reserved.
const TRANSLATED_OCTETS: [[usize; 4]; 4] = [
    [6, 7, 9, 10],
    [7, 9, 10, 11],
    [9, 10, 11, 12],
    [12, 13, 14, 15],
];

/// Whether a translator (`64:ff9b::/96` and `64:ff9b:1::/48`, RFC 6052 and 8215) or a 6to4 relay
/// (`2002::/16`) may forward packets to a private IPv4 address.
fn embeds_private_v4(address: Ipv6Addr) -> bool {
    let octets = address.octets();
    let embedded = |at: [usize; 4]| Ipv4Addr::from(at.map(|at| octets[at]));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_private_v4(embedded([12, 13, 14, 15])),
        [0x2002, ..] => is_private_v4(embedded([2, 3, 4, 5])),
        // The network chooses the length of its prefix in this range, so the address may be at any
        // of the positions. Zeros at its start or end are the rest of a prefix or the suffix (no
        // host is 10.0.0.0), unless there is nothing else.
        [0x64, 0xff9b, 1, ..] => {
            let is_part = |target: &Ipv4Addr| {
                let octets = target.octets();
                octets[0] == 0 || octets[1..] == [0; 3]
            };
            let mut targets = TRANSLATED_OCTETS
                .into_iter()
                .map(embedded)
                .filter(|target| !is_part(target))
                .peekable();
            targets.peek().is_none() || targets.any(is_private_v4)
        }
        _ => false,
    }
}

/// Returns the address if the host of a URL is one, with or without brackets; `None` for a name.
pub(super) fn address_literal(host: &str) -> Option<IpAddr> {
    without_brackets(host).parse().ok()
}

/// The error for a name whose addresses are all private, if the site allows none of them.
#[derive(Debug, thiserror::Error)]
#[error("it has the private address {0}")]
pub(super) struct PrivateAddress(pub(super) IpAddr);

/// A resolver that returns only public addresses, and the private ones that the site allows. A
/// check before the connection would not be enough, because the name may have other addresses a
/// moment later (DNS rebinding).
pub(super) struct PublicOnly {
    pub(super) allowed: PrivateTargets,
    /// The port of the requests, which entries of `allowed` may name.
    pub(super) port: u16,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        let port = self.port;
        Box::pin(async move {
            // reqwest replaces port 0 by that of the URL
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (good, bad): (Vec<SocketAddr>, Vec<SocketAddr>) = found.partition(|address| {
                !is_private(address.ip()) || allowed.allow(&address.ip().to_string(), port)
            });
            match bad.first().filter(|_| good.is_empty()) {
                Some(bad) => Err(PrivateAddress(bad.ip()).into()),
                None => Ok(Box::new(good.into_iter()) as Addrs),
            }
        })
    }
}

// Checks the hosts that responses name: in a redirect, a token realm, the `Location` of an upload,
// a foreign layer or an index. A public host whose response named a URL is written as `host:port`.

impl Transport {
    /// Checks a `url` in a file of the host `named_by` (`host:port`), such as an index of packages.
    /// Requests to the host of `url` are checked again when they are sent. Requests with
    /// [`HttpRequest::named_by`] do not need this call.
    ///
    /// # Errors
    /// If a public host names a private address that the site does not allow.
    pub async fn check_named_target(&self, url: &Url, named_by: &str) -> Result<(), HttpError> {
        if !self.is_public(named_by).await {
            return Ok(());
        }
        let route = self.proxies().proxy_for(url);
        self.check_literal(url, named_by)?;
        if route.is_some() || self.is_allowed(url) {
            return Ok(());
        }
        // a host that cannot be resolved is left to the request, which explains the failure
        let addresses = resolve(url.host_str().unwrap_or_default(), 0)
            .await
            .unwrap_or_default();
        let refused_address = addresses
            .iter()
            .map(SocketAddr::ip)
            .find(|address| is_private(*address) && !self.is_allowed_address(*address, url));
        if let Some(address) = refused_address {
            return Err(refused_target(url, named_by, address));
        }
        // the addresses may change before a request is sent, which checks them again
        locked(&self.0.named_hosts).insert(host_port(url), named_by.to_owned());
        Ok(())
    }

    /// Returns the public host, as `host:port`, whose response named the URL of `request`.
    pub(super) async fn named_by(&self, request: &HttpRequest) -> Option<String> {
        // the site names its mirrors, which may be private
        if request.origin.is_some() {
            return None;
        }
        if let Some(host) = &request.named_by
            && self.is_public(host).await
        {
            return Some(host.clone());
        }
        locked(&self.0.named_hosts)
            .get(&host_port(&request.url))
            .cloned()
    }

    /// Whether `host`, as `host:port`, is on the public internet, as far as landfall can tell: by
    /// its connections in this run, or if there are none, by its addresses.
    pub(super) async fn is_public(&self, host: &str) -> bool {
        let known = locked(&self.0.public_hosts).get(host).copied();
        if let Some(is_public) = known {
            return is_public;
        }
        // in doubt, a host counts as public, so that it may lead to fewer targets
        let Ok(url) = Url::parse(&format!("https://{host}/")) else {
            return true;
        };
        let name = url.host_str().unwrap_or_default();
        if let Some(address) = address_literal(name) {
            return !is_private(address);
        }
        if self.proxies().proxy_for(&url).is_some() {
            return true;
        }
        let addresses = resolve(name, 0).await.unwrap_or_default();
        !addresses.iter().any(|address| is_private(address.ip()))
    }

    /// Records whether the address that answered for the host of `url` is public, and returns that.
    /// A host that was public once stays recorded as public.
    pub(super) fn note_peer(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        peer: Option<SocketAddr>,
    ) -> bool {
        // behind a proxy, the peer is the proxy
        let address = address_literal(url.host_str().unwrap_or_default());
        let address = address.or_else(|| peer.filter(|_| route.is_none()).map(|peer| peer.ip()));
        let is_public = !address.is_some_and(is_private);
        locked(&self.0.public_hosts)
            .entry(host_port(url))
            .and_modify(|known| *known |= is_public)
            .or_insert(is_public);
        is_public
    }

    /// Returns the client for a request to `url`. It connects only to targets to which `named_by`
    /// may lead. Fails if the host must not be contacted or [`Transport::client`] fails.
    pub(super) fn client_for(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        named_by: Option<&str>,
    ) -> Result<reqwest::Client, HttpError> {
        check_host(url)?;
        if let Some(named_by) = named_by {
            self.check_literal(url, named_by)?;
        }
        check_tunnel(url, route)?;
        // behind a proxy, the client only connects to the proxy, which may be private
        let scope = if named_by.is_none() || route.is_some() || self.is_allowed(url) {
            AddressScope::Any
        } else {
            AddressScope::Public { port: port_of(url) }
        };
        self.client(url, route, scope)
    }

    /// Checks the host of `url` if it is an address literal, which no resolver sees.
    fn check_literal(&self, url: &Url, named_by: &str) -> Result<(), HttpError> {
        match address_literal(url.host_str().unwrap_or_default()) {
            Some(address) if is_private(address) && !self.is_allowed(url) => {
                Err(refused_target(url, named_by, address))
            }
            _ => Ok(()),
        }
    }

    /// Whether the site lets public hosts lead to the host of `url`.
    fn is_allowed(&self, url: &Url) -> bool {
        self.0
            .config
            .private_targets
            .allow(url.host_str().unwrap_or_default(), port_of(url))
    }

    /// Whether the site lets public hosts lead to this address at the port of `url`.
    fn is_allowed_address(&self, address: IpAddr, url: &Url) -> bool {
        let allowed = &self.0.config.private_targets;
        allowed.allow(&address.to_string(), port_of(url))
    }
}

/// The port to which a request to `url` is sent.
fn port_of(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or(0)
}

/// Checks that the host of `url` is a DNS name or an address. URL parsers accept more than that,
/// and people copy the contacted hosts into firewall rules.
fn check_host(url: &Url) -> Result<(), HttpError> {
    let host = url.host_str().unwrap_or_default();
    if address_literal(host).is_some() || is_dns_name(host.strip_suffix('.').unwrap_or(host)) {
        return Ok(());
    }
    let words = "its host is neither a DNS name nor an address, so no request is sent";
    Err(HttpError::new(ErrorKind::Invalid, words).at(url))
}

/// Checks that TLS with the host of `url` can be set up in a tunnel of the proxy `route`. reqwest
/// cannot do that for an IPv6 address, whose brackets it takes for a part of the name.
fn check_tunnel(url: &Url, route: Option<&ProxyUrl>) -> Result<(), HttpError> {
    let address = address_literal(url.host_str().unwrap_or_default());
    let is_ipv6 = address.is_some_and(|address| address.is_ipv6());
    match route {
        Some(proxy) if is_ipv6 && url.scheme() == "https" => {
            let words = format!(
                "https with an IPv6 address is not possible through the proxy {}; use the name of \
                 the host, or add the address to NO_PROXY",
                proxy.address()
            );
            Err(HttpError::new(ErrorKind::Local, words).at(url))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a connection that was refused because all addresses of its host are
/// private; `None` if it failed for another reason.
pub(super) fn refused_name(url: &Url, named_by: &str, error: &reqwest::Error) -> Option<HttpError> {
    let PrivateAddress(address) = find::<PrivateAddress>(error)?;
    Some(refused_target(url, named_by, *address))
}

fn refused_target(url: &Url, named_by: &str, address: IpAddr) -> HttpError {
    let target = match address_literal(url.host_str().unwrap_or_default()) {
        Some(_) => format!("the private address {}", host_port(url)),
        None => format!(
            "{}, which has the private address {address}",
            host_port(url)
        ),
    };
    let words = format!(
        "{named_by}, a public host, leads to {target}; refused, because a response of a public \
         host must not lead requests into a private network; if this is intended, add \
         `{KEY}: [\"{address}\"]` to the site"
    );
    HttpError::new(ErrorKind::Invalid, words).at(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RequestPurpose;
    use crate::proxy::ProxyRules;
    use crate::transport::TransportConfig;
    use reqwest::Method;

    #[test]
    fn private_and_public_addresses_are_distinguished() {
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00::7",
            "fec0::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            // below prefixes of 96, 48, 56 and 64 bits
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:ffa9:fe:a9fe::",
            "64:ff9b:1:ffff:a9:fea9:fe00:0",
            // with a suffix, which translators ignore
            "64:ff9b:1:a00:0:100:808:808",
            "64:ff9b:1::",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "203.0.113.2",
            "2001:db8::1",
            "2a00::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "64:ff9b:1::808:808",
            "64:ff9b:1:808:8:800::",
            "64:ff9b:1:a::808:808",
            "64:ff9b:1:ff08:8:808::",
            "64:ff9b:1:ffff:8:808:800:0",
            "2002:808:808::",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[tokio::test]
    async fn a_name_with_only_private_addresses_is_refused_unless_allowed() {
        let resolve = |entries: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|&entry| entry.into()).collect();
            let allowed = PrivateTargets::new(&entries).unwrap();
            let resolver = PublicOnly {
                allowed,
                port: 9000,
            };
            resolver.resolve("localhost".parse().unwrap())
        };
        let Err(refused) = resolve(&["10.0.0.0/8", "other.test"]).await else {
            panic!("it was resolved")
        };
        let PrivateAddress(address) = refused.downcast_ref().unwrap();
        assert!(address.is_loopback());
        assert!(
            resolve(&["127.0.0.0/8", "::1"])
                .await
                .unwrap()
                .all(|address| address.ip().is_loopback())
        );
        assert!(resolve(&["127.0.0.1:9000", "[::1]:9000"]).await.is_ok());
        assert!(resolve(&["127.0.0.1:9001", "[::1]:9001"]).await.is_err());
    }

    #[tokio::test]
    async fn an_ipv6_address_is_not_requested_through_a_tunnel() {
        let variable =
            |name: &str| (name == "HTTPS_PROXY").then(|| "http://127.0.0.1:1".to_owned());
        let transport = Transport::new(TransportConfig {
            proxies: ProxyRules::from_env(variable).unwrap(),
            ..TransportConfig::default()
        });
        let url = "https://[2001:db8::7]:5000/v2/".parse().unwrap();
        let request = HttpRequest::new(Method::GET, url, RequestPurpose::Registry);
        let error = transport.send(&request).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Local);
        assert!(error.to_string().contains("IPv6 address"), "{error}");
    }

    #[test]
    fn entries_have_the_syntax_of_no_proxy() {
        let entries = ["10.0.0.0/8, .corp.test", "minio.test:9000"].map(str::to_owned);
        let allowed = PrivateTargets::new(&entries).unwrap();
        for (host, port) in [("10.1.2.3", 80), ("a.corp.test", 443), ("minio.test", 9000)] {
            assert!(allowed.allow(host, port), "{host}");
        }
        for (host, port) in [
            ("11.1.2.3", 80),
            ("corp.test", 443),
            ("minio.test", 9001),
            ("[::1]", 80),
        ] {
            assert!(!allowed.allow(host, port), "{host}");
        }
        let dead = PrivateTargets::new(&["10.0.0.0/8, 172.20.".to_owned()])
            .unwrap_err()
            .to_string();
        assert_eq!(
            dead,
            "'172.20.' in privateTargets of the site matches no host; write 172.20.0.0/16"
        );
    }
}
