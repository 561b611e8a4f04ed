//! Probes a private host for plain http: landfall sends a ClientHello, and uses http only if the
//! answer starts with `HTTP/`. A failed handshake is not a reason to fall back from TLS: an
//! attacker can cause one.

use super::connect::ConnectError;
use super::error::{ErrorKind, HttpError};
use super::error_causes::describe_io;
use super::tls::TlsProfile;
use rustls::pki_types::ServerName;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The protocol of a host that was probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbedProtocol {
    Tls,
    PlainHttp,
}

/// Whether the host may be probed: `localhost`, a loopback address or a private one.
pub(super) fn may_probe(host: &str) -> bool {
    // no other names, because their addresses can change
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
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
    let name = host.trim_matches(['[', ']']);
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
