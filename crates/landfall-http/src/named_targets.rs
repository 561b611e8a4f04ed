//! Checks the hosts that responses name: in a redirect, a token realm, the `Location` of an upload,
//! a foreign layer or an index.
//!
//! A response of a public host must not lead to a private address, unless the site allows it.
//! Otherwise any server could make landfall send requests into the user's own network (server-side
//! request forgery).
//!
//! Behind a proxy, the proxy resolves names, and its rules decide. An address literal in the URL is
//! still checked here, and a name that is reached through a proxy counts as public.

use super::connect::resolve;
use super::error::{ErrorKind, HttpError, host_port};
use super::error_causes::find;
use super::private_targets::{KEY, PrivateAddress, address_literal, is_private};
use super::proxy::ProxyUrl;
use super::request::HttpRequest;
use super::transport::{AddressScope, Transport};
use landfall_model::{is_dns_name, locked};
use std::net::{IpAddr, SocketAddr};
use url::Url;

/// The public host, as `host:port`, whose response named a URL.
#[derive(Clone, Copy)]
pub(super) struct NamedBy<'a>(pub(super) &'a str);

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
        self.check_literal(url, NamedBy(named_by))?;
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
            return Err(refused_target(url, NamedBy(named_by), address));
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
        named_by: Option<NamedBy<'_>>,
    ) -> Result<reqwest::Client, HttpError> {
        check_host(url)?;
        let Some(named_by) = named_by else {
            return self.client(url, route, AddressScope::Any);
        };
        self.check_literal(url, named_by)?;
        // behind a proxy, the client only connects to the proxy, which may be private
        let scope = if route.is_some() || self.is_allowed(url) {
            AddressScope::Any
        } else {
            AddressScope::Public { port: port_of(url) }
        };
        self.client(url, route, scope)
    }

    /// Checks the host of `url` if it is an address literal, which no resolver sees.
    fn check_literal(&self, url: &Url, named_by: NamedBy<'_>) -> Result<(), HttpError> {
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

/// Returns the error for a connection that was refused because all addresses of its host are
/// private; `None` if it failed for another reason.
pub(super) fn refused_name(
    url: &Url,
    named_by: NamedBy<'_>,
    error: &reqwest::Error,
) -> Option<HttpError> {
    let PrivateAddress(address) = find::<PrivateAddress>(error)?;
    Some(refused_target(url, named_by, *address))
}

fn refused_target(url: &Url, named_by: NamedBy<'_>, address: IpAddr) -> HttpError {
    let NamedBy(by) = named_by;
    let target = match address_literal(url.host_str().unwrap_or_default()) {
        Some(_) => format!("the private address {}", host_port(url)),
        None => format!(
            "{}, which has the private address {address}",
            host_port(url)
        ),
    };
    let words = format!(
        "{by}, a public host, leads to {target}; refused, because a response of a public host must \
         not lead requests into a private network; if this is intended, add \
         `{KEY}: [\"{address}\"]` to the site"
    );
    HttpError::new(ErrorKind::Invalid, words).at(url)
}
