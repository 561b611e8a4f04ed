//! Inspects the path to a URL, step by step: name, proxy, connection, certificate.

use super::certificate::Certificate;
use super::connect::{self, ConnectError};
use super::error::{Error, ErrorKind};
use super::explain;
use super::ledger::Purpose;
use super::proxy::ProxyUrl;
use super::transport::Transport;
use std::net::IpAddr;
use url::Url;

/// What an inspection of the path to a URL found.
#[derive(Debug)]
pub struct Inspection {
    /// The addresses of the URL's host, as this machine resolves it.
    pub addresses: Result<Vec<IpAddr>, ConnectError>,
    /// The proxy, without its account.
    pub via: Option<String>,
    /// The account that the proxy gets, and where it comes from.
    pub account: Option<String>,
    /// The rule that chose the proxy.
    pub rule: String,
    /// The connection: direct, by CONNECT, or to a proxy that takes requests.
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
    /// Inspects the path to `url` and sends no request there. A refused account is final here too.
    pub async fn inspect(&self, url: &Url, purpose: Purpose) -> Inspection {
        let choice = self.proxies().choose(url);
        let (host, port) =
            (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        self.ledger().contact(host, port, None, choice.proxy.map(ProxyUrl::shown), purpose);
        let addresses = connect::resolve(host, port).await;
        let addresses = addresses.map(|list| {
            let mut list: Vec<IpAddr> = list.into_iter().map(|address| address.ip()).collect();
            list.sort();
            list.dedup();
            list
        });
        let (connection, tls) = match self.open(url, choice.proxy).await {
            Err(error) => (Err(error), None),
            Ok(stream) if url.scheme() == "https" => {
                (Ok(()), Some(self.shake(url, choice.proxy, stream).await))
            }
            Ok(_) => (Ok(()), None),
        };
        Inspection {
            addresses,
            via: choice.proxy.map(ProxyUrl::shown),
            account: choice.proxy.and_then(|proxy| Some(proxy.account.as_ref()?.to_string())),
            rule: choice.rule.to_string(),
            connection,
            tls,
        }
    }

    /// Whether the proxy itself can be reached.
    ///
    /// # Errors
    /// Why not.
    pub async fn reach_proxy(&self, proxy: &ProxyUrl) -> Result<(), ConnectError> {
        connect::to_proxy(proxy, &self.tls_profile(&proxy.url, Some(proxy))).await.map(drop)
    }

    async fn open(&self, url: &Url, route: Option<&ProxyUrl>) -> Result<connect::Stream, Error> {
        let (host, port) =
            (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
        let failed = |error: ConnectError| explain::unreachable(url, route, &error.to_string(), &error, true);
        let Some(proxy) = route else {
            return Ok(Box::new(connect::dial(host, port).await.map_err(failed)?));
        };
        let at_proxy = |error: ConnectError| {
            let words = explain::no_proxy_connection(proxy, &error.to_string());
            Error::new(ErrorKind::Network, words).at(url).caused_by(error)
        };
        let tls = self.tls_profile(url, route);
        if url.scheme() == "http" {
            return connect::to_proxy(proxy, &tls).await.map_err(at_proxy);
        }
        let sign_in = self.proxy_sign_in(proxy);
        let turn = sign_in.enter(proxy, url).await?;
        let opened = match connect::through_proxy(proxy, &tls, (host, port), true).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(answer)) => Err(explain::refusal(url, proxy, answer.status, &answer.headers)),
            Err(error) => Err(at_proxy(error)),
        };
        sign_in.learn(proxy, turn.is_some(), opened.as_ref().map(|_| ()));
        opened
    }

    async fn shake(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        stream: connect::Stream,
    ) -> Result<Handshake, Error> {
        let profile = self.tls_profile(url, route);
        let stream = match connect::handshake(stream, url.host_str().unwrap_or_default(), &profile).await {
            Ok(stream) => stream,
            Err(error @ ConnectError::Io(_)) => {
                let explained = explain::certificate(url, route, &error);
                let unreachable = || explain::unreachable(url, route, &error.to_string(), &error, false);
                return Err(explained.unwrap_or_else(unreachable));
            }
            Err(error) => {
                return Err(Error::new(ErrorKind::Local, error.to_string()).at(url).caused_by(error));
            }
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
