//! Describes errors of the libraries below in words of our own, by their causes.

use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use std::error::Error;
use std::io;
use tower_service::Service;

/// The error of hyper-util for a proxy that opens no tunnel. That crate exports no name for it.
pub(super) type TunnelError = <Tunnel<HttpConnector> as Service<hyper::Uri>>::Error;

/// Why a request failed, on one line. The text of a library is shown only if the cause is unknown.
pub(super) fn describe(error: &reqwest::Error) -> String {
    describe_known(error).unwrap_or_else(|| chain(error))
}

/// Describes the failure of a connection, if its cause is a known one.
pub(super) fn describe_known(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = find::<rustls::Error>(error) {
        return Some(describe_tls(error));
    }
    if let Some(words) = find::<io::Error>(error).and_then(describe_io) {
        return Some(words);
    }
    let error = find::<hyper::Error>(error)?;
    let words = if error.is_incomplete_message() {
        "the connection was closed before the end of the answer"
    } else if error.is_parse() {
        "the answer is not HTTP"
    } else if error.is_timeout() {
        "the connection timed out"
    } else {
        return None;
    };
    Some(words.into())
}

/// Describes an I/O error whose kind says what failed.
pub(super) fn describe_io(error: &io::Error) -> Option<String> {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        InvalidData, InvalidInput, NetworkUnreachable, Other, TimedOut, UnexpectedEof,
    };
    let words = match error.kind() {
        ConnectionRefused => "the connection is refused",
        ConnectionReset | ConnectionAborted => "the connection was reset",
        BrokenPipe | UnexpectedEof => "the connection was closed too early",
        HostUnreachable => "there is no route to the host",
        NetworkUnreachable => "the network is unreachable",
        TimedOut => "the connection timed out",
        Other | InvalidData | InvalidInput => return None,
        // A failed name look-up is recognized by what it lacks: an errno, and a library's error.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some_and(is_text) => {
            let told = error.to_string();
            let why = told.rsplit(": ").next().unwrap_or(&told);
            return Some(format!("its name cannot be resolved: {why}"));
        }
        _ => return None,
    };
    Some(words.into())
}

/// Whether an error is only a text: the standard library has no type for a resolver's message.
fn is_text(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_none() && error.source().is_none()
}

fn describe_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => "the answer is not TLS".into(),
        rustls::Error::AlertReceived(alert) => {
            format!("the server refuses the TLS handshake ({alert:?})")
        }
        rustls::Error::PeerIncompatible(_) => {
            "the server has no version or cipher of TLS that is taken here".into()
        }
        other => format!("TLS failed: {other}"),
    }
}

/// The messages of an error's causes on one line. The outermost two errors are left out: that of
/// reqwest holds the URL with its query, and both say only that a request failed.
fn chain(error: &reqwest::Error) -> String {
    let Some(first) = error.source() else {
        return "the request failed".into();
    };
    let is_outer = first.is::<hyper_util::client::legacy::Error>();
    let first = first.source().filter(|_| is_outer).unwrap_or(first);
    let mut words = vec![first.to_string()];
    let mut source = first.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        // Many errors repeat the message of their cause.
        if !words.iter().any(|known| known.contains(&next)) {
            words.push(next);
        }
        source = cause.source();
    }
    words.join(": ")
}

/// The first cause of this type, also inside I/O errors, which do not report it as a source.
pub(super) fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_described_by_their_kind() {
        let said = |error: io::Error| describe_io(&error);
        assert_eq!(
            said(io::ErrorKind::ConnectionReset.into()).unwrap(),
            "the connection was reset"
        );
        assert_eq!(
            said(io::Error::from_raw_os_error(111)).unwrap(),
            "the connection is refused"
        );
        let lookup = std::net::ToSocketAddrs::to_socket_addrs("nowhere.invalid:1").unwrap_err();
        let words = said(lookup).unwrap();
        assert!(
            words.starts_with("its name cannot be resolved: ") && !words.contains("lookup"),
            "{words}"
        );
        assert_eq!(said(io::Error::other(io::Error::other("x"))), None);
    }
}
