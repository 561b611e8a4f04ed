//! Connections that landfall opens itself in order to inspect them: directly to a host, or by
//! CONNECT through a proxy (RFC 9110, 9.3.6).

use crate::clients::{TlsError, TlsProfile};
use crate::error::{ErrorKind, HttpError, describe_io, describe_known};
use crate::proxy::ProxyUrl;
use base64::Engine as _;
use landfall_model::without_brackets;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A stream that can be read and written.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection by TCP, TLS or a tunnel.
pub(super) type Connection = Box<dyn Duplex>;

/// The reason why a connection cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    message: String,
    /// The error of the system or of TLS.
    #[source]
    pub(super) cause: Option<io::Error>,
}

impl ConnectError {
    fn new(message: impl ToString) -> ConnectError {
        ConnectError {
            message: message.to_string(),
            cause: None,
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> ConnectError {
        ConnectError {
            message: describe_known(&error).unwrap_or_else(|| error.to_string()),
            cause: Some(error),
        }
    }
}

impl From<TlsError> for ConnectError {
    fn from(error: TlsError) -> ConnectError {
        ConnectError::new(error)
    }
}

/// The time limit for each step: a look-up, a connection, a handshake, a proxy's answer.
const LIMIT: Duration = Duration::from_secs(30);

/// Limits the time of one step.
async fn within<T>(work: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| {
        let seconds = LIMIT.as_secs();
        Err(ConnectError::new(format!("no answer within {seconds} s")))
    })
}

/// Returns the addresses of a host, as this machine resolves it.
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    // an IPv6 address has brackets in a URL, but not for the resolver
    let name = without_brackets(host);
    within(async { Ok(tokio::net::lookup_host((name, port)).await?.collect()) }).await
}

pub(super) async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let name = without_brackets(host);
    within(async { Ok(TcpStream::connect((name, port)).await?) }).await
}

/// Sets up TLS over a connection.
pub(super) async fn handshake(
    connection: Connection,
    host: &str,
    tls: &TlsProfile,
) -> Result<TlsStream<Connection>, ConnectError> {
    let config = tls.config(None)?;
    // rustls recognizes an IPv6 address only without brackets
    let name =
        ServerName::try_from(without_brackets(host).to_owned()).map_err(ConnectError::new)?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    within(async { Ok(connector.connect(name, connection).await?) }).await
}

/// Opens a connection to the proxy itself, with TLS if its URL is an https URL.
pub(super) async fn connect_to_proxy(
    proxy: &ProxyUrl,
    tls: &TlsProfile,
) -> Result<Connection, ConnectError> {
    let host = proxy.url.host_str().unwrap_or_default();
    let port = proxy.url.port_or_known_default().unwrap_or(80);
    let connection: Connection = Box::new(connect_tcp(host, port).await?);
    if proxy.url.scheme() == "https" {
        // `skipVerify` is about the host behind the proxy
        let tls = TlsProfile {
            skip_verify: false,
            ..tls.clone()
        };
        return Ok(Box::new(handshake(connection, host, &tls).await?));
    }
    Ok(connection)
}

/// Requests a tunnel to `target` (`host:port`) from the proxy, with the proxy's account if
/// `with_account` is set. Returns the tunnel, or the answer with which the proxy refused it.
pub(super) async fn open_tunnel(
    proxy: &ProxyUrl,
    tls: &TlsProfile,
    target: &str,
    with_account: bool,
) -> Result<Result<Connection, (StatusCode, HeaderMap)>, ConnectError> {
    let mut connection = connect_to_proxy(proxy, tls).await?;
    // RFC 9110, 9.3.6: the target is an authority (host and port), also in `Host`
    let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(account) = proxy.account.as_ref().filter(|_| with_account) {
        let pair = format!("{}:{}", account.user, account.password);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        head += &format!("Proxy-Authorization: Basic {encoded}\r\n");
    }
    within(async {
        connection
            .write_all(format!("{head}\r\n").as_bytes())
            .await?;
        let answer = read_head(&mut connection).await?;
        // RFC 9110, 9.3.6: any 2xx answer opens the tunnel
        if answer.0.is_success() {
            return Ok(Ok(connection));
        }
        Ok(Err(answer))
    })
    .await
}

/// Reads the head of an answer byte by byte, because the bytes after the head belong to the tunnel.
async fn read_head(connection: &mut Connection) -> Result<(StatusCode, HeaderMap), ConnectError> {
    // the answer comes from the network, so its size and its number of headers are limited
    const LONGEST: usize = 64 << 10;
    const MAX_HEADERS: usize = 100;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = connection.read_u8().await.map_err(|error| ConnectError {
            message: format!("it closed the connection before the end of its answer ({error})"),
            cause: Some(error),
        })?;
        head.push(byte);
        if head.len() > LONGEST {
            return Err(ConnectError::new(
                "the head of its answer does not end within 64 KiB",
            ));
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut fields);
    let not_http = || ConnectError::new("its answer is not HTTP");
    answer.parse(&head).map_err(|_| not_http())?;
    let status = answer
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or_else(not_http)?;
    let mut headers = HeaderMap::new();
    for field in answer.headers.iter() {
        // malformed fields are skipped: the rest still explains the refusal
        if let Ok(name) = HeaderName::try_from(field.name)
            && let Ok(value) = HeaderValue::from_bytes(field.value)
        {
            headers.append(name, value);
        }
    }
    Ok((status, headers))
}

// Probes a private host for plain http: landfall sends a ClientHello, and uses http only if the
// answer starts with `HTTP/`. A failed handshake is not a reason to fall back from TLS: an
// attacker can cause one.

/// The protocol of a host that was probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbedProtocol {
    Tls,
    PlainHttp,
}

/// Whether the host may be probed: `localhost`, a loopback address or a private one.
pub(super) fn may_probe(host: &str) -> bool {
    // no other names, because their addresses can change
    match without_brackets(host).parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// Sends a ClientHello to `host:port` and looks at the first bytes of the answer, within `limit`.
/// If the protocol stays unknown, the error names the flag that makes the probe unnecessary.
pub(super) async fn probe(
    host: &str,
    port: u16,
    limit: Duration,
) -> Result<ProbedProtocol, HttpError> {
    match tokio::time::timeout(limit, first_bytes(host, port)).await {
        Ok(first) => match &first? {
            b"HTTP/" => Ok(ProbedProtocol::PlainHttp),
            // A handshake record or an alert. If TLS fails, the request that follows reports why.
            [0x15 | 0x16, 0x03, ..] => Ok(ProbedProtocol::Tls),
            _ => {
                let words = "the answer to TLS is neither TLS nor HTTP";
                Err(undecided(host, port, words))
            }
        },
        Err(_) => {
            let words = format!("no answer to TLS within {} s", limit.as_secs());
            Err(undecided(host, port, &words))
        }
    }
}

/// Sends a ClientHello and reads the first bytes of the answer.
async fn first_bytes(host: &str, port: u16) -> Result<[u8; 5], HttpError> {
    let name = without_brackets(host);
    let mut stream = TcpStream::connect((name, port)).await.map_err(|error| {
        HttpError::new(ErrorKind::Network, connect_message(host, port, &error)).caused_by(error)
    })?;
    let hello = client_hello(name)
        .map_err(|error| HttpError::new(ErrorKind::Network, error.to_string()).caused_by(error))?;
    stream.write_all(&hello).await.map_err(|error| {
        undecided(host, port, &format!("cannot send: {error}")).caused_by(error)
    })?;
    // a TLS record header has 5 bytes, and so has `HTTP/`
    let mut first = [0; 5];
    match stream.read_exact(&mut first).await {
        Ok(_) => Ok(first),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let words = "the connection was closed without an answer to TLS";
            Err(undecided(host, port, words))
        }
        Err(error) => {
            Err(undecided(host, port, &format!("no answer to TLS ({error})")).caused_by(error))
        }
    }
}

/// Returns the error for a host whose protocol the probe could not determine.
fn undecided(host: &str, port: u16, words: &str) -> HttpError {
    let words = format!("{words}; if it speaks plain http, use --plain-http {host}:{port}");
    HttpError::new(ErrorKind::Network, words)
}

fn connect_message(host: &str, port: u16, error: &io::Error) -> String {
    let why = describe_io(error).unwrap_or_else(|| error.to_string());
    if error.kind() == io::ErrorKind::ConnectionRefused {
        return format!(
            "cannot connect: {why}; nothing listens at {host}:{port}: is the port right, and does \
             the server run?"
        );
    }
    format!("cannot connect: {why}")
}

/// Returns the first message of a TLS handshake.
fn client_hello(name: &str) -> Result<Vec<u8>, ConnectError> {
    // the handshake is not continued, so there is no certificate to verify
    let config = TlsProfile {
        skip_verify: true,
        ..TlsProfile::default()
    }
    .config(None)?;
    let name = ServerName::try_from(name.to_owned()).map_err(ConnectError::new)?;
    let connection = rustls::ClientConnection::new(config.into(), name);
    let mut hello = Vec::new();
    connection
        .map_err(io::Error::other)?
        .write_tls(&mut hello)?;
    Ok(hello)
}
