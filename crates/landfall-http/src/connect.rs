//! Connections that landfall opens by hand, to look at them: directly to a host, or by CONNECT
//! through a proxy (RFC 9110, 9.3.6).

use super::error_causes::known;
use super::proxy::ProxyUrl;
use super::tls::{TlsError, TlsProfile};
use base64::Engine as _;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Any two-way stream.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, whatever is under it.
pub(super) type Stream = Box<dyn Io>;

/// A proxy's answer to CONNECT that is no success.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing happened for this long.
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The system or TLS failed.
    #[error("{}", known(.0).unwrap_or_else(|| .0.to_string()))]
    Io(#[source] io::Error),
    /// The proxy closed the connection before the end of its answer.
    #[error("it hung up without an answer ({0})")]
    HungUp(#[source] io::Error),
    /// The head of the proxy's answer is longer than any.
    #[error("its answer has no end")]
    TooLong,
    /// The proxy's answer is no HTTP.
    #[error("its answer is no HTTP")]
    NotHttp,
    /// A TLS setting cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// TLS knows no such name.
    #[error("{0}")]
    Name(#[from] InvalidDnsNameError),
}

/// To the end of the connection's set-up, and of a proxy's answer.
const LIMIT: Duration = Duration::from_secs(30);

async fn within<T>(work: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    tokio::time::timeout(LIMIT, work)
        .await
        .unwrap_or(Err(ConnectError::Timeout(LIMIT)))
}

/// The addresses of a host, as this machine resolves it.
///
/// # Errors
/// The resolver's words.
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let name = host.trim_matches(['[', ']']);
    let found = async {
        tokio::net::lookup_host((name, port))
            .await
            .map_err(ConnectError::Io)
    };
    within(async { Ok(found.await?.collect()) }).await
}

/// A TCP connection.
///
/// # Errors
/// The system's words.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let name = host.trim_matches(['[', ']']);
    within(async {
        TcpStream::connect((name, port))
            .await
            .map_err(ConnectError::Io)
    })
    .await
}

/// TLS over a connection.
///
/// # Errors
/// A setting that cannot be used, or what failed in the handshake.
pub(super) async fn handshake(
    stream: Stream,
    host: &str,
    tls: &TlsProfile,
) -> Result<TlsStream<Stream>, ConnectError> {
    let config = tls.config()?;
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    within(async {
        connector
            .connect(name, stream)
            .await
            .map_err(ConnectError::Io)
    })
    .await
}

/// A connection to the proxy itself, with TLS where its URL says https.
///
/// # Errors
/// Why the proxy cannot be reached.
pub(super) async fn to_proxy(proxy: &ProxyUrl, tls: &TlsProfile) -> Result<Stream, ConnectError> {
    let host = proxy.url.host_str().unwrap_or_default();
    let stream: Stream =
        Box::new(dial(host, proxy.url.port_or_known_default().unwrap_or(80)).await?);
    match proxy.url.scheme() {
        "https" => Ok(Box::new(handshake(stream, host, tls).await?)),
        _ => Ok(stream),
    }
}

/// Asks the proxy for a tunnel to `host:port`. `with_account` sends its account along.
///
/// # Errors
/// When the proxy cannot be reached, or answers no HTTP.
pub(super) async fn through_proxy(
    proxy: &ProxyUrl,
    tls: &TlsProfile,
    (host, port): (&str, u16),
    with_account: bool,
) -> Result<Result<Stream, Answer>, ConnectError> {
    let mut stream = to_proxy(proxy, tls).await?;
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(account) = proxy.account.as_ref().filter(|_| with_account) {
        let pair = format!("{}:{}", account.user, account.password);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        head += &format!("Proxy-Authorization: Basic {encoded}\r\n");
    }
    within(async {
        stream
            .write_all(format!("{head}\r\n").as_bytes())
            .await
            .map_err(ConnectError::Io)?;
        let answer = read_head(&mut stream).await?;
        Ok(if answer.status.is_success() {
            Ok(stream)
        } else {
            Err(answer)
        })
    })
    .await
}

/// Reads the head of an answer byte by byte: what follows it belongs to the tunnel.
async fn read_head(stream: &mut Stream) -> Result<Answer, ConnectError> {
    const LONGEST: usize = 64 << 10;
    const MOST_HEADERS: usize = 100;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.map_err(ConnectError::HungUp)?);
        if head.len() > LONGEST {
            return Err(ConnectError::TooLong);
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut fields);
    answer.parse(&head).map_err(|_| ConnectError::NotHttp)?;
    let status = answer
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(ConnectError::NotHttp)?;
    let fields = answer.headers.iter().filter_map(|field| {
        Some((
            HeaderName::try_from(field.name).ok()?,
            HeaderValue::from_bytes(field.value).ok()?,
        ))
    });
    let mut headers = HeaderMap::new();
    fields.for_each(|(name, value)| {
        headers.append(name, value);
    });
    Ok(Answer { status, headers })
}
