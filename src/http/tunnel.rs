//! Connections made by hand, to look at them: straight to a host, or by CONNECT through a proxy
//! (RFC 9110, 9.3.6).

use super::proxy::ProxyUrl;
use super::tls::TlsProfile;
use base64::Engine as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::ServerName;
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
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
}

/// To the end of the connection's set-up, and of a proxy's answer.
const LIMIT: Duration = Duration::from_secs(30);

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| Err(format!("no answer within {} s", LIMIT.as_secs()));
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(late)
}

/// The addresses of a host, as this machine resolves it.
///
/// # Errors
/// The resolver's words.
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let name = host.trim_matches(['[', ']']);
    let found = within(async {
        let found = tokio::net::lookup_host((name, port)).await;
        Ok(found.map_err(|error| error.to_string())?.collect::<Vec<_>>())
    });
    found.await
}

/// A TCP connection.
///
/// # Errors
/// The system's words.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let name = host.trim_matches(['[', ']']);
    within(async { TcpStream::connect((name, port)).await.map_err(|error| error.to_string()) }).await
}

/// TLS over a connection.
///
/// # Errors
/// A setting that cannot be used (as text), or what failed in the handshake.
pub(super) async fn handshake(
    stream: Stream,
    host: &str,
    tls: &TlsProfile,
) -> Result<TlsStream<Stream>, Result<std::io::Error, String>> {
    let config = tls.config().map_err(Err)?;
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
    let name = name.map_err(|error| Err(error.to_string()))?;
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let work = async { Ok(connector.connect(name, stream).await) };
    within(work).await.map_err(Err)?.map_err(Ok)
}

/// A connection to the proxy itself, with TLS where its URL says https.
///
/// # Errors
/// Why it cannot be reached.
pub(super) async fn to_proxy(proxy: &ProxyUrl, tls: &TlsProfile) -> Result<Stream, String> {
    let host = proxy.url.host_str().unwrap_or_default();
    let stream: Stream = Box::new(dial(host, proxy.url.port_or_known_default().unwrap_or(80)).await?);
    if proxy.url.scheme() != "https" {
        return Ok(stream);
    }
    match handshake(stream, host, tls).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(Ok(error)) => Err(error.to_string()),
        Err(Err(why)) => Err(why),
    }
}

/// Asks the proxy for a tunnel to `host:port`; `signed` sends its account along.
///
/// # Errors
/// When the proxy cannot be reached, or answers no HTTP.
pub(super) async fn connect(
    proxy: &ProxyUrl,
    tls: &TlsProfile,
    (host, port): (&str, u16),
    signed: bool,
) -> Result<Result<Stream, Answer>, String> {
    let mut stream = to_proxy(proxy, tls).await?;
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(account) = proxy.account.as_ref().filter(|_| signed) {
        let pair = format!("{}:{}", account.user, account.password);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        head += &format!("Proxy-Authorization: Basic {encoded}\r\n");
    }
    within(async {
        let io = |error: std::io::Error| error.to_string();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.map_err(io)?;
        let answer = read_head(&mut stream).await?;
        Ok(if (200..300).contains(&answer.status) { Ok(stream) } else { Err(answer) })
    })
    .await
}

/// Reads an answer's head byte by byte: what follows it belongs to the tunnel.
async fn read_head(stream: &mut Stream) -> Result<Answer, String> {
    const LONGEST: usize = 64 << 10;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte =
            stream.read_u8().await.map_err(|error| format!("it hung up without an answer ({error})"))?;
        head.push(byte);
        if head.len() > LONGEST {
            return Err("its answer has no end".into());
        }
    }
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.split("\r\n");
    let status = lines.next().filter(|line| line.starts_with("HTTP/1."));
    let status = status.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or("its answer is no HTTP")?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if let (Ok(name), Ok(value)) =
            (HeaderName::try_from(name.trim()), HeaderValue::try_from(value.trim()))
        {
            headers.append(name, value);
        }
    }
    Ok(Answer { status, headers })
}
