//! Whether a host with a private address speaks plain http: https is tried first, and http is
//! believed only where the answer to a ClientHello starts with `HTTP/`.

use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    /// TLS.
    Tls,
    /// Plain http, found by probing.
    PlainHttp,
}

/// Whether the host may be probed: `localhost`, a loopback address or a private one.
pub(super) fn may_probe(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// Sends a ClientHello to `host:port` and looks at the first bytes of the answer.
///
/// # Errors
/// What came instead, with the flag that settles it.
pub(super) async fn probe(host: &str, port: u16, limit: Duration) -> Result<Spoken, String> {
    let name = host.trim_matches(['[', ']']);
    let settle = format!("if it speaks plain http, say so with --plain-http {host}:{port}");
    let attempt = async {
        let mut stream =
            TcpStream::connect((name, port)).await.map_err(|error| format!("cannot connect: {error}"))?;
        stream
            .write_all(&client_hello(name)?)
            .await
            .map_err(|error| format!("cannot send: {error}; {settle}"))?;
        let mut first = [0; 5];
        let mut filled = 0;
        while filled < first.len() {
            match stream.read(&mut first[filled..]).await {
                Ok(0) => return Err(format!("the connection was closed without an answer to TLS; {settle}")),
                Ok(count) => filled += count,
                Err(error) => return Err(format!("no answer to TLS ({error}); {settle}")),
            }
        }
        match &first {
            b"HTTP/" => Ok(Spoken::PlainHttp),
            // a handshake record or an alert: TLS will say itself what is wrong
            [0x15 | 0x16, 0x03, ..] => Ok(Spoken::Tls),
            _ => Err(format!("the answer to TLS is neither TLS nor HTTP; {settle}")),
        }
    };
    tokio::time::timeout(limit, attempt)
        .await
        .unwrap_or_else(|_| Err(format!("no answer to TLS within {} s; {settle}", limit.as_secs())))
}

fn client_hello(name: &str) -> Result<Vec<u8>, String> {
    let config = super::tls::TlsProfile { skip_verify: true, ..Default::default() }.config()?;
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    let mut connection =
        rustls::ClientConnection::new(config.into(), name).map_err(|error| error.to_string())?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).map_err(|error| error.to_string())?;
    Ok(hello)
}
