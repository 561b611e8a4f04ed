//! Finds and tells the causes of an error of the libraries below.

use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use std::error::Error;
use std::io;
use tower_service::Service;

/// What hyper-util says where a proxy opens no tunnel. The type has no path of its own in that crate.
pub(super) type TunnelError = <Tunnel<HttpConnector> as Service<hyper::Uri>>::Error;

/// The causes of an error on one line. The outermost message is left out where there is a cause: it
/// holds the URL with its query, and says no more than that a request failed.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let Some(first) = error.source() else { return "the request failed".into() };
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
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
