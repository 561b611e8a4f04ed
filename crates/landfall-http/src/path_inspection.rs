//! Inspects the path to a URL, step by step: name, proxy, connection, certificate.

use super::certificate::Certificate;
use super::connect::{self, ConnectError};
use super::error::{ErrorKind, HttpError};
use super::explain;
use super::ledger::{Contact, RequestPurpose};
use super::proxy::ProxyUrl;
use super::tls::TlsProfile;
use super::transport::Transport;
use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use std::net::IpAddr;
use url::Url;

/// What an inspection of the path to a URL found.
#[derive(Debug)]
pub struct PathInspection {
    /// The addresses of the URL's host, as this machine resolves it.
    pub addresses: Result<Vec<IpAddr>, ConnectError>,
    /// The proxy, without its account.
    pub via: Option<String>,
    /// The account that the proxy gets, and where it comes from.
    pub account: Option<String>,
    /// The rule that chose the proxy.
    pub rule: String,
    /// The connection: direct, by CONNECT, or to a proxy that takes requests.
    pub connection: Result<(), HttpError>,
    /// The handshake, where there is TLS and a connection.
    pub tls: Option<Result<TlsHandshake, HttpError>>,
}

/// A handshake that succeeded.
#[derive(Debug)]
pub struct TlsHandshake {
    /// Protocol, as `TLS 1.3`.
    pub version: String,
    /// The certificates that the server sent; its own first.
    pub chain: Vec<Certificate>,
    /// What vouches for them: a file, the system's authorities, or nothing by `skipVerify`.
    pub trusted_by: String,
    /// The certificate was not checked.
    pub skipped: bool,
}

/// The certificate that a server shows for a name, whoever vouches for it.
#[derive(Debug)]
pub struct PresentedCertificate {
    /// Whether it is for that name.
    pub covers: bool,
    /// The names that it is for.
    pub names: Vec<String>,
    /// It, as it is shown.
    pub certificate: Option<Certificate>,
    /// The proxy that the connection went through, without its account.
    pub via: Option<String>,
}

/// How a port is reached for a knock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectRoute {
    /// Directly, whatever the proxy settings say: for traffic that never uses a proxy.
    Direct,
    /// Through the proxy that the settings choose for an https request to the port, if they choose
    /// one.
    ByRules,
}

/// What a knock at a port found.
#[derive(Debug)]
pub enum ConnectOutcome {
    /// Somebody listens.
    Open,
    /// The host says that nobody listens.
    Closed,
    /// The name of the host does not resolve here.
    Unresolved(HttpError),
    /// Nothing, or the refusal of somebody between.
    Stopped(HttpError),
    /// The proxy accepted the request for a tunnel. Whether it reaches the port, the proxy alone
    /// knows.
    Tunnel {
        /// The proxy, without its account.
        via: String,
    },
    /// The proxy cannot be reached, or refuses the tunnel.
    NoTunnel {
        /// The proxy, without its account.
        via: String,
        /// Why.
        error: HttpError,
    },
}

impl Transport {
    /// Opens a connection to `host:port` by this route and closes it.
    ///
    /// # Errors
    /// If the host cannot be part of a URL.
    pub async fn try_connect(
        &self,
        host: &str,
        port: u16,
        route: ConnectRoute,
    ) -> Result<ConnectOutcome, HttpError> {
        let name = host.trim_matches(['[', ']']);
        let shown = if name.contains(':') {
            format!("[{name}]")
        } else {
            name.to_owned()
        };
        let url = Url::parse(&format!("https://{shown}:{port}/"))
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()).about(host))?;
        let proxy = match route {
            ConnectRoute::Direct => None,
            ConnectRoute::ByRules => self.proxies().choose(&url).proxy,
        };
        let via = proxy.map(ProxyUrl::shown);
        self.ledger()
            .contact(Contact::new(&url, None, via.clone()), RequestPurpose::File);
        if via.is_none()
            && let Err(error) = addresses(host, port).await
        {
            let words = format!("{name} does not resolve here: {error}");
            return Ok(ConnectOutcome::Unresolved(HttpError::new(
                ErrorKind::Network,
                words,
            )));
        }
        Ok(match (self.open(&url, proxy).await, via) {
            (Ok(_), None) => ConnectOutcome::Open,
            (Ok(_), Some(via)) => ConnectOutcome::Tunnel { via },
            (Err(error), Some(via)) => ConnectOutcome::NoTunnel { via, error },
            (Err(error), None) if is_refused(&error) => ConnectOutcome::Closed,
            (Err(error), None) => ConnectOutcome::Stopped(error),
        })
    }

    /// The addresses of a host, as this machine resolves it.
    ///
    /// # Errors
    /// The resolver's words.
    pub async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ConnectError> {
        addresses(host, 443).await
    }

    /// The certificate that the host of `url` shows, and whether it covers `name`. Nothing is
    /// trusted by that.
    ///
    /// # Errors
    /// Where there is no TLS.
    pub async fn presented_certificate(
        &self,
        url: &Url,
        name: &str,
    ) -> Result<PresentedCertificate, HttpError> {
        let choice = self.proxies().choose(url);
        let stream = self.open(url, choice.proxy).await?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let profile = TlsProfile {
            skip_verify: true,
            ..self.tls_profile(url, choice.proxy)
        };
        let failed = |error: ConnectError| {
            explain::unreachable(url, choice.proxy, &error.to_string(), &error, false)
        };
        let stream = connect::handshake(stream, host, &profile)
            .await
            .map_err(failed)?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let own = chain
            .first()
            .and_then(|der| ParsedCertificate::try_from(der).ok());
        let name = ServerName::try_from(name.to_owned()).ok();
        let covers = own
            .zip(name)
            .is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok());
        Ok(PresentedCertificate {
            covers,
            names: chain
                .first()
                .map(|der| Certificate::names(der))
                .unwrap_or_default(),
            certificate: chain.first().and_then(|der| Certificate::read(der)),
            via: choice.proxy.map(ProxyUrl::shown),
        })
    }

    /// Inspects the path to `url` and sends no request there. A refused account is final here too.
    pub async fn inspect_path(&self, url: &Url, purpose: RequestPurpose) -> PathInspection {
        let choice = self.proxies().choose(url);
        let (host, port) = (
            url.host_str().unwrap_or_default(),
            url.port_or_known_default().unwrap_or_default(),
        );
        self.ledger().contact(
            Contact::new(url, None, choice.proxy.map(ProxyUrl::shown)),
            purpose,
        );
        let addresses = addresses(host, port).await;
        let (connection, tls) = match self.open(url, choice.proxy).await {
            Err(error) => (Err(error), None),
            Ok(stream) if url.scheme() == "https" => {
                (Ok(()), Some(self.shake(url, choice.proxy, stream).await))
            }
            Ok(_) => (Ok(()), None),
        };
        PathInspection {
            addresses,
            via: choice.proxy.map(ProxyUrl::shown),
            account: choice
                .proxy
                .and_then(|proxy| Some(proxy.account.as_ref()?.to_string())),
            rule: choice.rule.to_string(),
            connection,
            tls,
        }
    }

    /// Whether the proxy itself can be reached.
    ///
    /// # Errors
    /// Why not.
    pub async fn connect_to_proxy(&self, proxy: &ProxyUrl) -> Result<(), ConnectError> {
        connect::to_proxy(proxy, &self.tls_profile(&proxy.url, Some(proxy)))
            .await
            .map(drop)
    }

    async fn open(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
    ) -> Result<connect::Stream, HttpError> {
        let (host, port) = (
            url.host_str().unwrap_or_default(),
            url.port_or_known_default().unwrap_or_default(),
        );
        let failed = |error: ConnectError| {
            explain::unreachable(url, route, &error.to_string(), &error, true).caused_by(error)
        };
        let Some(proxy) = route else {
            return Ok(Box::new(connect::dial(host, port).await.map_err(failed)?));
        };
        let at_proxy = |error: ConnectError| {
            let words = explain::no_proxy_connection(proxy, &error.to_string());
            HttpError::new(ErrorKind::Network, words)
                .at(url)
                .caused_by(error)
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
    ) -> Result<TlsHandshake, HttpError> {
        let profile = self.tls_profile(url, route);
        let stream =
            match connect::handshake(stream, url.host_str().unwrap_or_default(), &profile).await {
                Ok(stream) => stream,
                Err(error @ ConnectError::Io(_)) => {
                    let explained = explain::certificate(url, route, &error);
                    let unreachable =
                        || explain::unreachable(url, route, &error.to_string(), &error, false);
                    return Err(explained.unwrap_or_else(unreachable));
                }
                Err(error) => {
                    return Err(HttpError::new(ErrorKind::Local, error.to_string())
                        .at(url)
                        .caused_by(error));
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
        Ok(TlsHandshake {
            version: version.into(),
            trusted_by: profile.voucher(&chain),
            skipped: profile.skip_verify,
            chain,
        })
    }
}

async fn addresses(host: &str, port: u16) -> Result<Vec<IpAddr>, ConnectError> {
    let mut list: Vec<IpAddr> = connect::resolve(host, port)
        .await?
        .into_iter()
        .map(|address| address.ip())
        .collect();
    list.sort();
    list.dedup();
    Ok(list)
}

/// Whether the other side said that nobody listens at the port.
fn is_refused(error: &HttpError) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<ConnectError>());
    matches!(cause, Some(ConnectError::Io(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}
