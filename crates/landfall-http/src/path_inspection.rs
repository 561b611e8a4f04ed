//! Inspects the path to a URL step by step: name, proxy, connection, certificate.

use crate::clients::TlsProfile;
use crate::connect::{self, ConnectError, Connection};
use crate::error::{ErrorKind, HttpError, host_port};
use crate::explain;
use crate::ledger::{Contact, RequestPurpose};
use crate::proxy::ProxyUrl;
use crate::transport::Transport;
use crate::verifier::Certificate;
use landfall_model::without_brackets;
use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use std::net::IpAddr;
use url::Url;

/// The path to a URL, as an inspection found it.
#[derive(Debug)]
pub struct PathInspection {
    /// The addresses of the URL's host, as this machine resolves it.
    pub addresses: Result<Vec<IpAddr>, ConnectError>,
    /// `host:port` of the proxy; `None` for a direct connection.
    pub via: Option<String>,
    /// The user name at the proxy and where it is configured, without the password.
    pub account: Option<String>,
    /// The rule that chose the proxy or the direct connection.
    pub rule: String,
    /// The connection: direct, or through a proxy by CONNECT. For an http URL with a proxy, the
    /// connection to the proxy itself.
    pub connection: Result<(), HttpError>,
    /// The handshake; `None` if the URL has no TLS or the connection failed.
    pub tls: Option<Result<TlsHandshake, HttpError>>,
}

/// The result of a successful TLS handshake.
#[derive(Debug)]
pub struct TlsHandshake {
    /// The protocol version, such as `TLS 1.3`.
    pub version: String,
    /// The certificates that the server sent, its own first.
    pub chain: Vec<Certificate>,
    /// The reason why the certificates are trusted: a file, the system's authorities, or
    /// `skipVerify`.
    pub trusted_by: String,
    /// Whether verification was skipped (`skipVerify`).
    pub skipped: bool,
}

/// The certificate that a server presents for a name, whether or not it is trusted.
#[derive(Debug)]
pub struct PresentedCertificate {
    /// Whether it is valid for that name.
    pub covers: bool,
    /// The names that it is valid for.
    pub names: Vec<String>,
    /// The certificate; `None` if it cannot be parsed.
    pub certificate: Option<Certificate>,
    /// `host:port` of the proxy that the connection used.
    pub via: Option<String>,
}

/// How [`Transport::try_connect`] reaches a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectRoute {
    /// Directly, whatever the proxy settings say: for traffic that never uses a proxy.
    Direct,
    /// Through the proxy that the settings choose for an https request to the port, if they choose
    /// one.
    ByRules,
}

/// The outcome of [`Transport::try_connect`], as `doctor` reports it.
#[derive(Debug)]
pub enum ConnectOutcome {
    /// A server listens at the port.
    Open,
    /// The host refuses connections: nothing listens at the port.
    Closed,
    /// The name of the host cannot be resolved on this machine.
    Unresolved(HttpError),
    /// No answer, or a refusal by a device in between, such as a firewall.
    Blocked(HttpError),
    /// The proxy opened a tunnel. Only the proxy knows whether it reached the port.
    Tunnel {
        /// The proxy that the connection goes through, as `host:port`.
        via: String,
    },
    /// The proxy cannot be reached, or refuses the tunnel.
    NoTunnel {
        /// The proxy that the connection goes through, as `host:port`.
        via: String,
        /// The failed connection, or the refusal.
        error: HttpError,
    },
}

impl Transport {
    /// Opens a connection to `host:port` and closes it.
    ///
    /// # Errors
    /// If `host` cannot be part of a URL. A failed connection is an outcome, not an error.
    pub async fn try_connect(
        &self,
        host: &str,
        port: u16,
        route: ConnectRoute,
    ) -> Result<ConnectOutcome, HttpError> {
        let name = without_brackets(host);
        let host_text = if name.contains(':') {
            format!("[{name}]")
        } else {
            name.to_owned()
        };
        let url = Url::parse(&format!("https://{host_text}:{port}/"))
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()).about(host))?;
        let proxy = match route {
            ConnectRoute::Direct => None,
            ConnectRoute::ByRules => self.proxies().proxy_for(&url),
        };
        let via = proxy.map(ProxyUrl::address);
        self.ledger()
            .contact(Contact::new(&url, None, via.clone()), RequestPurpose::File);
        // resolved separately, because a connection reports a failed look-up as an I/O error
        // without a kind; behind a proxy, the proxy resolves the name
        if via.is_none()
            && let Err(error) = resolve_sorted(host, port).await
        {
            let words = format!("{name} cannot be resolved on this machine: {error}");
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
            (Err(error), None) => ConnectOutcome::Blocked(error),
        })
    }

    /// Returns the addresses of a host, as this machine resolves it, sorted.
    ///
    /// # Errors
    /// If the look-up fails.
    pub async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, ConnectError> {
        resolve_sorted(host, 443).await
    }

    /// Returns the certificate that the host of `url` presents, and whether it is valid for `name`.
    /// Its issuer is not verified.
    ///
    /// # Errors
    /// If the connection or the handshake fails.
    pub async fn presented_certificate(
        &self,
        url: &Url,
        name: &str,
    ) -> Result<PresentedCertificate, HttpError> {
        let proxy = self.proxies().proxy_for(url);
        let stream = self.open(url, proxy).await?;
        let host = without_brackets(url.host_str().unwrap_or_default());
        // an untrusted certificate is shown too: the caller asks which one the server presents
        let profile = TlsProfile {
            skip_verify: true,
            ..self.tls_profile(url, proxy)
        };
        let stream = connect::handshake(stream, host, &profile)
            .await
            .map_err(|error| unreachable_error(url, proxy, &error, false))?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let own = chain.first();
        let name = ServerName::try_from(name.to_owned()).ok();
        let covers = own
            .and_then(|der| ParsedCertificate::try_from(der).ok())
            .zip(name)
            .is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok());
        Ok(PresentedCertificate {
            covers,
            names: own.map(|der| Certificate::names(der)).unwrap_or_default(),
            certificate: own.and_then(|der| Certificate::read(der)),
            via: proxy.map(ProxyUrl::address),
        })
    }

    /// Inspects the path to `url` without sending a request to its host. If the proxy refuses the
    /// account, that is final for the run.
    pub async fn inspect_path(&self, url: &Url, purpose: RequestPurpose) -> PathInspection {
        let rule = self.proxies().choose(url);
        let proxy = rule.proxy();
        let via = proxy.map(ProxyUrl::address);
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        self.ledger()
            .contact(Contact::new(url, None, via.clone()), purpose);
        let addresses = resolve_sorted(host, port).await;
        let (connection, tls) = match self.open(url, proxy).await {
            Err(error) => (Err(error), None),
            Ok(stream) if url.scheme() == "https" => {
                (Ok(()), Some(self.tls_handshake(url, proxy, stream).await))
            }
            Ok(_) => (Ok(()), None),
        };
        PathInspection {
            addresses,
            via,
            account: proxy.and_then(|proxy| Some(proxy.account.as_ref()?.to_string())),
            rule: rule.to_string(),
            connection,
            tls,
        }
    }

    /// Opens a connection to the proxy itself and closes it.
    ///
    /// # Errors
    /// If the proxy cannot be reached.
    pub async fn connect_to_proxy(&self, proxy: &ProxyUrl) -> Result<(), ConnectError> {
        connect::connect_to_proxy(proxy, &self.tls_profile(&proxy.url, Some(proxy)))
            .await
            .map(drop)
    }

    /// Opens a connection to the host of `url`: directly, or by CONNECT through the proxy of this
    /// route. If there is a proxy and `url` is an http URL, the connection is to the proxy itself.
    async fn open(&self, url: &Url, route: Option<&ProxyUrl>) -> Result<Connection, HttpError> {
        let Some(proxy) = route else {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            let connection = connect::connect_tcp(host, port)
                .await
                .map_err(|error| unreachable_error(url, None, &error, true).caused_by(error))?;
            return Ok(Box::new(connection));
        };
        // errors before the tunnel concern the proxy, not the target
        let at_proxy = |error: ConnectError| {
            let words = explain::no_proxy_connection(proxy, &error.to_string());
            HttpError::new(ErrorKind::Network, words)
                .at(url)
                .caused_by(error)
        };
        let tls = self.tls_profile(url, route);
        // http requests are sent to the proxy itself, without a tunnel
        if url.scheme() == "http" {
            return connect::connect_to_proxy(proxy, &tls)
                .await
                .map_err(at_proxy);
        }
        // inspections take part in the sign-in, so that they do not try a refused account again
        let sign_in = self.proxy_sign_in(proxy);
        let turn = sign_in.enter(proxy, url).await?;
        let opened = match connect::open_tunnel(proxy, &tls, &host_port(url), true).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err((status, headers))) => Err(explain::refusal(url, proxy, status, &headers)),
            Err(error) => Err(at_proxy(error)),
        };
        sign_in.learn(proxy, turn.is_some(), opened.as_ref().map(|_| ()));
        opened
    }

    async fn tls_handshake(
        &self,
        url: &Url,
        route: Option<&ProxyUrl>,
        stream: Connection,
    ) -> Result<TlsHandshake, HttpError> {
        let profile = self.tls_profile(url, route);
        let stream =
            match connect::handshake(stream, url.host_str().unwrap_or_default(), &profile).await {
                Ok(stream) => stream,
                Err(error) if error.cause.is_some() => {
                    let explained = explain::certificate_error(url, route, &error);
                    return Err(
                        explained.unwrap_or_else(|| unreachable_error(url, route, &error, false))
                    );
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
        // rustls supports only TLS 1.2 and 1.3
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS 1.2",
        };
        Ok(TlsHandshake {
            version: version.into(),
            trusted_by: profile.trust_source(&chain),
            skipped: profile.skip_verify,
            chain,
        })
    }
}

/// Returns the distinct addresses of a host, sorted.
async fn resolve_sorted(host: &str, port: u16) -> Result<Vec<IpAddr>, ConnectError> {
    let mut list: Vec<IpAddr> = connect::resolve(host, port)
        .await?
        .into_iter()
        .map(|address| address.ip())
        .collect();
    list.sort();
    list.dedup();
    Ok(list)
}

/// Returns the error for a connection that landfall opened itself.
fn unreachable_error(
    url: &Url,
    route: Option<&ProxyUrl>,
    error: &ConnectError,
    is_connecting: bool,
) -> HttpError {
    explain::unreachable_error(url, route, &error.to_string(), error, is_connecting)
}

/// Whether the host refused the connection.
fn is_refused(error: &HttpError) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<ConnectError>());
    cause
        .and_then(|error| error.cause.as_ref())
        .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}
