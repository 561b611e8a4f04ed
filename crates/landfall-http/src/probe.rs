//! Probes a host with a private address for plain http: landfall sends a ClientHello, and takes the
//! host for one of http only where the answer starts with `HTTP/`.

use super::connect::ConnectError;
use super::error::{ErrorKind, HttpError};
use super::error_causes::system;
use super::tls::TlsProfile;
use rustls::pki_types::ServerName;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a probed host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
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
pub(super) async fn probe(host: &str, port: u16, limit: Duration) -> Result<Protocol, HttpError> {
    let name = host.trim_matches(['[', ']']);
    let failed = |words: &str| HttpError::new(ErrorKind::Network, words);
    let settle = |words: String| {
        let flag = format!("; if it speaks plain http, say so with --plain-http {host}:{port}");
        failed(&(words + &flag))
    };
    let attempt = async {
        let connecting = TcpStream::connect((name, port)).await;
        let mut stream = connecting
            .map_err(|error| failed(&no_connection(host, port, &error)).caused_by(error))?;
        let hello =
            client_hello(name).map_err(|error| failed(&error.to_string()).caused_by(error))?;
        let sent = stream.write_all(&hello).await;
        sent.map_err(|error| settle(format!("cannot send: {error}")).caused_by(error))?;
        let mut first = [0; 5];
        match stream.read_exact(&mut first).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(settle(
                    "the connection was closed without an answer to TLS".into(),
                ));
            }
            Err(error) => {
                return Err(settle(format!("no answer to TLS ({error})")).caused_by(error));
            }
        }
        match &first {
            b"HTTP/" => Ok(Protocol::PlainHttp),
            // a handshake record or an alert: TLS will say itself what is wrong
            [0x15 | 0x16, 0x03, ..] => Ok(Protocol::Tls),
            _ => Err(settle("the answer to TLS is neither TLS nor HTTP".into())),
        }
    };
    let late = |_| {
        Err(settle(format!(
            "no answer to TLS within {} s",
            limit.as_secs()
        )))
    };
    tokio::time::timeout(limit, attempt)
        .await
        .unwrap_or_else(late)
}

fn no_connection(host: &str, port: u16, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!(
                "; nothing listens at {host}:{port}: is the port right, and does the server run?"
            )
        }
        _ => String::new(),
    };
    let why = system(error).unwrap_or_else(|| error.to_string());
    format!("cannot connect: {why}{advice}")
}

fn client_hello(name: &str) -> Result<Vec<u8>, ConnectError> {
    let config = TlsProfile {
        skip_verify: true,
        ..TlsProfile::default()
    }
    .config()?;
    let name = ServerName::try_from(name.to_owned())?;
    let connection = rustls::ClientConnection::new(config.into(), name);
    let mut hello = Vec::new();
    connection
        .map_err(io::Error::other)
        .and_then(|mut connection| connection.write_tls(&mut hello))
        .map_err(ConnectError::Io)?;
    Ok(hello)
}
