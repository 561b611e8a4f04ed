//! Where an answer may lead: a host that a redirect, a token realm, the `Location` of an upload, a
//! foreign layer or an index names. An answer of a public host leads to no private address, unless
//! the site allows it: else any server could have landfall send requests into the network that it
//! runs in (server-side request forgery).
//!
//! Behind a proxy, the proxy resolves names, and its own rules decide; an address that stands in
//! the URL is still looked at here, and a host that is reached through a proxy counts as public.

use super::connect::resolve;
use super::error::{ErrorKind, HttpError, host_port};
use super::error_causes::find;
use super::private_targets::{KEY, PrivateAddress, is_private, literal};
use super::proxy::ProxyUrl;
use super::request::HttpRequest;
use super::transport::{Reach, Transport};
use landfall_model::is_dns_name;
use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;
use url::Url;

/// A host that an answer names, and the public host that named it.
pub(super) struct Led<'a> {
    /// `host:port`.
    pub(super) by: &'a str,
}

impl Transport {
    /// Checks that `url`, which a file of the host `by` (`host:port`) names, leads from no public
    /// host to a private address; and has requests to it checked again when they are sent. A
    /// request with `named_by` needs no such call.
    ///
    /// # Errors
    /// When it does, and the site does not allow it.
    pub async fn check_named_target(&self, url: &Url, by: &str) -> Result<(), HttpError> {
        if !self.is_public(by).await {
            return Ok(());
        }
        let (route, led) = (self.proxies().proxy_for(url), Led { by });
        self.check_literal(url, &led)?;
        if route.is_some() || self.is_allowed(url) {
            return Ok(());
        }
        let found = resolve(url.host_str().unwrap_or_default(), 0)
            .await
            .unwrap_or_default();
        let is_bad =
            |found: &SocketAddr| is_private(found.ip()) && !self.is_allowed_address(found.ip());
        match found.iter().find(|found| is_bad(found)) {
            Some(bad) => Err(refused(url, &led, bad.ip())),
            None => {
                let mut known = self.0.led_by.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert(host_port(url), by.to_owned());
                Ok(())
            }
        }
    }

    /// The public host, `host:port`, that an answer of which led to the URL of `request`. A mirror
    /// of the site is where the site leads.
    pub(super) async fn led_by(&self, request: &HttpRequest) -> Option<String> {
        if request.origin.is_some() {
            return None;
        }
        if let Some(by) = &request.named_by
            && self.is_public(by).await
        {
            return Some(by.clone());
        }
        let known = self.0.led_by.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&host_port(&request.url)).cloned()
    }

    /// Whether the host at `address`, `host:port`, is one of the public internet, as far as
    /// landfall can tell: by its connections in this run, else by its addresses.
    pub(super) async fn is_public(&self, address: &str) -> bool {
        if let Some(known) = self
            .0
            .public_hosts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(address)
        {
            return *known;
        }
        let Ok(url) = Url::parse(&format!("https://{address}/")) else {
            return true;
        };
        let host = url.host_str().unwrap_or_default();
        match literal(host) {
            Some(address) => !is_private(address),
            None if self.proxies().proxy_for(&url).is_some() => true,
            None => {
                let found = resolve(host, 0).await.unwrap_or_default();
                !found.iter().any(|found| is_private(found.ip()))
            }
        }
    }

    /// Takes note of the address that answered for the host of `url`, and returns whether the host
    /// is public. One that was public once stays so.
    pub(super) fn note_peer(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        peer: Option<SocketAddr>,
    ) -> bool {
        let address = literal(url.host_str().unwrap_or_default());
        let address = address.or_else(|| peer.filter(|_| route.is_none()).map(|peer| peer.ip()));
        let is_public = !address.is_some_and(is_private);
        let mut hosts = self
            .0
            .public_hosts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        hosts
            .entry(host_port(url))
            .and_modify(|known| *known |= is_public)
            .or_insert(is_public);
        is_public
    }

    /// The client for a request to `url`, to which `led` perhaps led.
    ///
    /// # Errors
    /// A host that may not be asked, and those of [`Transport::client`].
    pub(super) fn client_for(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        led: Option<&Led<'_>>,
    ) -> Result<reqwest::Client, HttpError> {
        check_host(url)?;
        let Some(led) = led else {
            return self.client(url, route, Reach::Any);
        };
        self.check_literal(url, led)?;
        let is_free = route.is_some() || self.is_allowed(url);
        self.client(url, route, if is_free { Reach::Any } else { Reach::Public })
    }

    /// Checks the address in `url`, where there is one.
    fn check_literal(&self, url: &Url, led: &Led<'_>) -> Result<(), HttpError> {
        match literal(url.host_str().unwrap_or_default()) {
            Some(address) if is_private(address) && !self.is_allowed(url) => {
                Err(refused(url, led, address))
            }
            _ => Ok(()),
        }
    }

    /// Whether the site lets public hosts lead to the host of `url`.
    fn is_allowed(&self, url: &Url) -> bool {
        let port = url.port_or_known_default().unwrap_or(0);
        self.0
            .config
            .private_targets
            .allow(url.host_str().unwrap_or_default(), port)
    }

    fn is_allowed_address(&self, address: IpAddr) -> bool {
        self.0.config.private_targets.allow(&address.to_string(), 0)
    }
}

/// Checks that the host of `url` is a DNS name or an address. A URL parser takes more than that,
/// and what is contacted stands in rules of firewalls.
fn check_host(url: &Url) -> Result<(), HttpError> {
    let host = url.host_str().unwrap_or_default();
    if literal(host).is_some() || is_dns_name(host.strip_suffix('.').unwrap_or(host)) {
        return Ok(());
    }
    Err(HttpError::new(
        ErrorKind::Invalid,
        "its host is no DNS name and no address; it is not asked",
    )
    .at(url))
}

/// The error for a connection that was not made as the name of its host has private addresses
/// alone.
pub(super) fn refused_name(url: &Url, led: &Led<'_>, error: &reqwest::Error) -> Option<HttpError> {
    let PrivateAddress(address) = find::<PrivateAddress>(error)?;
    Some(refused(url, led, *address))
}

fn refused(url: &Url, led: &Led<'_>, address: IpAddr) -> HttpError {
    let (by, host) = (led.by, url.host_str().unwrap_or_default());
    let at = match literal(host) {
        Some(_) => format!("the private address {}", host_port(url)),
        None => format!(
            "{}, which has the private address {address}",
            host_port(url)
        ),
    };
    let words = format!(
        "{by}, a public host, leads to {at}; refused, as no answer from outside may send requests into a private \
         network; if it is meant to, add `{KEY}: [\"{address}\"]` to the site"
    );
    HttpError::new(ErrorKind::Invalid, words).at(url)
}
