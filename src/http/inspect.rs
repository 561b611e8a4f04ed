//! A look at the way to a URL, step by step: name, proxy, connection, certificate.

use super::certificate::Certificate;
use super::error::{Error, ErrorKind, shown_url};
use super::ledger::Why;
use super::proxy::ProxyUrl;
use super::transport::Transport;
use super::{explain, tunnel};
use reqwest::StatusCode;
use std::net::IpAddr;
use url::Url;

/// What was found on the way to a URL.
#[derive(Debug)]
pub struct Inspection {
    /// The addresses of the URL's host, as this machine resolves it.
    pub addresses: Result<Vec<IpAddr>, String>,
    /// The proxy, without its account.
    pub via: Option<String>,
    /// The account that is shown to the proxy, and where it comes from.
    pub account: Option<String>,
    /// The rule that decided about the proxy.
    pub rule: String,
    /// The connection: straight, by CONNECT, or to a proxy that will be asked by request.
    pub connection: Result<(), Error>,
    /// The handshake, where there is TLS and a connection.
    pub tls: Option<Result<Handshake, Error>>,
}

/// A handshake that succeeded.
#[derive(Debug)]
pub struct Handshake {
    /// Protocol, as `TLS 1.3`.
    pub version: String,
    /// The certificates that the server sent; its own first.
    pub chain: Vec<Certificate>,
    /// What vouches for them: a file, the system's authorities, or nothing by `skipVerify`.
    pub trusted_by: String,
    /// The certificate was not checked.
    pub skipped: bool,
}

impl Transport {
    /// Looks at the way to `url` without asking it for anything. A refused account is final here too.
    pub async fn inspect(&self, url: &Url, why: Why) -> Inspection {
        let decision = self.proxies().explain(url);
        let (host, port) =
            (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        self.ledger().contact(host, port, None, decision.proxy.map(ProxyUrl::shown), why);
        let addresses = tunnel::resolve(host, port).await;
        let addresses = addresses.map(|list| {
            let mut list: Vec<IpAddr> = list.into_iter().map(|address| address.ip()).collect();
            list.sort();
            list.dedup();
            list
        });
        let (connection, tls) = match self.open(url, decision.proxy).await {
            Err(error) => (Err(error), None),
            Ok(stream) if url.scheme() == "https" => {
                (Ok(()), Some(self.shake(url, decision.proxy, stream).await))
            }
            Ok(_) => (Ok(()), None),
        };
        Inspection {
            addresses,
            via: decision.proxy.map(ProxyUrl::shown),
            account: decision.proxy.and_then(|proxy| Some(proxy.account.as_ref()?.to_string())),
            rule: decision.rule.to_string(),
            connection,
            tls,
        }
    }

    /// Whether the proxy itself can be reached.
    ///
    /// # Errors
    /// Why not.
    pub async fn reach_proxy(&self, proxy: &ProxyUrl) -> Result<(), String> {
        tunnel::to_proxy(proxy, &self.tls_profile(&proxy.url, Some(proxy))).await.map(drop)
    }

    async fn open(&self, url: &Url, route: Option<&ProxyUrl>) -> Result<tunnel::Stream, Error> {
        let (host, port) =
            (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        let failed = |why: String| explain::unreachable(url, route, &why, true);
        let Some(proxy) = route else {
            return Ok(Box::new(tunnel::dial(host, port).await.map_err(failed)?));
        };
        let at_proxy = |why: String| {
            let message = format!(
                "{}: cannot connect to the proxy {} (from {}): {why}",
                shown_url(url),
                proxy.shown(),
                proxy.source
            );
            Error::new(ErrorKind::Network, message)
        };
        let tls = self.tls_profile(url, route);
        if url.scheme() == "http" {
            return tunnel::to_proxy(proxy, &tls).await.map_err(at_proxy);
        }
        let door = self.door(proxy);
        let turn = door.enter(proxy, url).await?;
        let opened = match tunnel::connect(proxy, &tls, (host, port), true).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(answer)) => {
                let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
                let refusal = explain::refusal(url, proxy, status, &answer.headers, true);
                Err(refusal.unwrap_or_else(|| at_proxy(format!("it answered {status}"))))
            }
            Err(why) => Err(at_proxy(why)),
        };
        door.learn(proxy, url, turn.is_some(), opened.as_ref().map(|_| ()));
        opened
    }

    async fn shake(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        stream: tunnel::Stream,
    ) -> Result<Handshake, Error> {
        let profile = self.tls_profile(url, route);
        let stream = match tunnel::handshake(stream, url.host_str().unwrap_or_default(), &profile).await {
            Ok(stream) => stream,
            Err(Ok(error)) => {
                let explained = explain::certificate(url, route, &error);
                return Err(
                    explained.unwrap_or_else(|| explain::unreachable(url, route, &error.to_string(), false))
                );
            }
            Err(Err(why)) => return Err(Error::new(ErrorKind::Local, format!("{}: {why}", shown_url(url)))),
        };
        let connection = stream.get_ref().1;
        let chain: Vec<Certificate> = connection
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .filter_map(|der| Certificate::read(der))
            .collect();
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS 1.2",
        };
        Ok(Handshake {
            version: version.into(),
            trusted_by: profile.voucher(&chain),
            skipped: profile.skip_verify,
            chain,
        })
    }
}
