//! The properties of a request for the access log and the metrics.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, Version};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The name of the authenticated user, as an extension of the response.
#[derive(Clone)]
pub(crate) struct UserName(pub(crate) String);

/// A request as it was received.
pub(crate) struct RequestInfo {
    pub(super) peer: SocketAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) agent: Option<HeaderValue>,
    pub(super) received: Instant,
}

impl RequestInfo {
    /// Records `request` from `peer`, received now.
    pub(crate) fn new<T>(request: &Request<T>, peer: SocketAddr) -> RequestInfo {
        RequestInfo {
            peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            agent: request.headers().get(USER_AGENT).cloned(),
            received: Instant::now(),
        }
    }
}

/// A request whose response has ended.
pub(super) struct CompletedRequest<'a> {
    pub(super) request: &'a RequestInfo,
    pub(super) user: Option<&'a str>,
    pub(super) status: StatusCode,
    /// The number of body bytes that were passed to hyper, which writes them to the connection.
    pub(super) bytes: u64,
    pub(super) duration: Duration,
}
