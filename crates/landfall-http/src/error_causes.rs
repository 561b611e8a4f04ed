//! Describes errors of libraries by their causes, in landfall's own words.

use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use std::error::Error;
use std::io;
use tower_service::Service;

/// hyper-util's error for a proxy that refuses a tunnel. That crate exports no name for it.
pub(super) type TunnelError = <Tunnel<HttpConnector> as Service<hyper::Uri>>::Error;

/// Describes why a request failed, in one line. The text of a library is shown only if the cause is
/// unknown.
pub(super) fn describe(error: &reqwest::Error) -> String {
    describe_known(error).unwrap_or_else(|| chain(error))
}

/// Describes the failure of a connection, if its cause is a known one.
pub(super) fn describe_known(error: &(dyn Error + 'static)) -> Option<String> {
    // TLS first: rustls reports its errors inside an I/O error
    if let Some(error) = find::<rustls::Error>(error) {
        return Some(describe_tls(error));
    }
    if let Some(words) = find::<io::Error>(error).and_then(describe_io) {
        return Some(words);
    }
    let error = find::<hyper::Error>(error)?;
    let words = if error.is_incomplete_message() {
        "the connection was closed before the end of the answer"
    } else if error.is_parse_too_large() {
        "the headers of the answer are too large, or too many"
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
        // The standard library has no kind for a failed name look-up. Such an error is recognized
        // by its inner error, which is only a text, and by its missing errno.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some_and(is_text) => {
            let text = error.to_string();
            let why = text.rsplit(": ").next().unwrap_or(&text);
            return Some(format!("its name cannot be resolved: {why}"));
        }
        _ => return None,
    };
    Some(words.into())
}

/// Whether an error is only a text, such as the message of the resolver.
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
            "the server supports no TLS version or cipher that landfall accepts".into()
        }
        other => format!("TLS failed: {other}"),
    }
}

/// Returns the messages of an error's causes in one line, without those of reqwest and of
/// hyper-util's client: both only say that a request failed, and reqwest's contains the URL with
/// its query.
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

/// Returns the first error of this type among `error` and its causes. Also looks into I/O errors,
/// which do not report their inner error as a source.
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
        let printed = |error: io::Error| describe_io(&error);
        assert_eq!(
            printed(io::ErrorKind::ConnectionReset.into()).unwrap(),
            "the connection was reset"
        );
        assert_eq!(
            printed(io::Error::from_raw_os_error(111)).unwrap(),
            "the connection is refused"
        );
        let lookup = std::net::ToSocketAddrs::to_socket_addrs("nowhere.invalid:1").unwrap_err();
        let words = printed(lookup).unwrap();
        assert!(
            words.starts_with("its name cannot be resolved: ") && !words.contains("lookup"),
            "{words}"
        );
        assert_eq!(printed(io::Error::other(io::Error::other("x"))), None);
    }
}
