//! A request as it is told of: who asked for what, and how it ended.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, Version};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The name of the user whose request it is, as an extension of the response.
#[derive(Clone)]
pub(in super::super) struct User(pub(in super::super) String);

/// Who asked for what, and when.
pub(in super::super) struct Caller {
    pub(super) peer: SocketAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) agent: Option<HeaderValue>,
    pub(super) begun: Instant,
}

impl Caller {
    /// Who sent `request`.
    pub(in super::super) fn of<T>(request: &Request<T>, peer: SocketAddr) -> Caller {
        Caller {
            peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            agent: request.headers().get(USER_AGENT).cloned(),
            begun: Instant::now(),
        }
    }
}

/// How a request ended.
pub(super) struct Ended<'a> {
    pub(super) caller: &'a Caller,
    pub(super) user: Option<&'a str>,
    pub(super) status: StatusCode,
    /// Bytes of the body that were given to the connection.
    pub(super) bytes: u64,
    pub(super) took: Duration,
}
