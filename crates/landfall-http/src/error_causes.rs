//! Finds and tells the causes of an error of the libraries below, in words of our own.

use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use std::error::Error;
use std::io;
use tower_service::Service;

/// What hyper-util says where a proxy opens no tunnel. The type has no path of its own in that
/// crate.
pub(super) type TunnelError = <Tunnel<HttpConnector> as Service<hyper::Uri>>::Error;

/// Why a request failed, on one line. What the libraries say stands there only where nothing better
/// is known.
pub(super) fn causes(error: &reqwest::Error) -> String {
    known(error).unwrap_or_else(|| chain(error))
}

/// The words for an error of a connection, where its cause is a known one.
pub(super) fn known(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = find::<rustls::Error>(error) {
        return Some(tls(error));
    }
    if let Some(words) = find::<io::Error>(error).and_then(system) {
        return Some(words);
    }
    let error = find::<hyper::Error>(error)?;
    let words = match () {
        () if error.is_incomplete_message() => {
            "the connection was closed before the end of the answer"
        }
        () if error.is_parse() => "the answer is not HTTP",
        () if error.is_timeout() => "the connection timed out",
        () => return None,
    };
    Some(words.into())
}

/// The words for an error of the system, where its kind says what it is.
pub(super) fn system(error: &io::Error) -> Option<String> {
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
        // a failed look-up has neither a number of the system's nor an error of a library
        _ if error.raw_os_error().is_none() && error.get_ref().is_some_and(is_text) => {
            let told = error.to_string();
            let why = told.rsplit(": ").next().unwrap_or(&told);
            return Some(format!("its name cannot be resolved: {why}"));
        }
        _ => return None,
    };
    Some(words.into())
}

/// Whether an error is nothing but a text: the standard library has no type for what the resolver
/// says.
fn is_text(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_none() && error.source().is_none()
}

/// The words for an error of TLS.
fn tls(error: &rustls::Error) -> String {
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

/// The messages of an error and its causes on one line. The outermost is left out where there is a
/// cause: it holds the URL with its query, and says no more than that a request failed; so is that
/// of the client below it.
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
        // many an error repeats its cause
        if !words.iter().any(|known| known.contains(&next)) {
            words.push(next);
        }
        source = cause.source();
    }
    words.join(": ")
}

/// The first cause of this type, looked for inside I/O errors too.
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
    fn errors_of_the_system_are_told_in_our_own_words() {
        let said = |error: io::Error| system(&error);
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
