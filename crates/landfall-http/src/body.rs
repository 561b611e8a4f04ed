//! Bodies of requests and responses. landfall can send a body again, counts the bytes that it
//! receives, and notices a stall.

use super::error::{ErrorKind, HttpError, host_port};
use super::error_causes::describe;
use super::host_limiter::HostSlot;
use super::ledger::LedgerEntry;
use super::transport::Transport;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// The bytes of a body, in pieces as they arrive. The stream ends after the first error.
pub type ByteStream = BoxStream<'static, Result<Bytes, HttpError>>;

/// The body of a request. It can be opened again for each attempt.
#[derive(Clone)]
pub enum RequestBody {
    /// No body. `Content-Length: 0` is sent if the method usually has a body.
    Empty,
    /// A small body in memory.
    Bytes(Bytes),
    /// A large body of known length.
    Stream {
        /// The length in bytes, which is sent as `Content-Length`.
        length: u64,
        /// Opens the body at its beginning. It is called again for each attempt.
        open: Arc<dyn Fn() -> BoxFuture<'static, Result<ByteStream, HttpError>> + Send + Sync>,
    },
}

/// A response whose body has not been read yet. It holds a slot of its host, unless the request was
/// a HEAD.
pub struct HttpResponse {
    /// The status of the last hop.
    pub status: StatusCode,
    /// The headers of the last hop.
    pub headers: HeaderMap,
    /// The URL of the last hop, after redirects.
    pub url: Url,
    /// The method of the request.
    pub method: Method,
    /// Whether the host of `url` is on the public internet, as far as landfall can tell.
    pub(super) is_public: bool,
    /// `host:port` of the proxy that was used.
    pub(super) via: Option<String>,
    /// The time at which the request was sent.
    pub(super) sent_at: Instant,
    pub(super) inner: reqwest::Response,
    pub(super) transport: Transport,
    pub(super) entry: LedgerEntry,
    /// Shared with the body of the request, which lends the slot while its source returns no bytes.
    pub(super) slot: Option<Arc<HostSlot>>,
}

/// A body that is being received.
struct IncomingBody {
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    transport: Transport,
    entry: LedgerEntry,
    url: Url,
    sent_at: Instant,
    /// The number of bytes that must still arrive before the host counts as responsive; `None` once
    /// it does, or if the response is not a success.
    unproven: Option<u64>,
    /// Held until the body ends or fails.
    _slot: Option<Arc<HostSlot>>,
}

impl IncomingBody {
    /// Returns the next bytes and the rest of the body, or the error that ends the body. `None` at
    /// the end of the body.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<IncomingBody>)> {
        // The limit is for each piece. A total limit would abort large blobs on slow links.
        let idle = self.transport.limits().idle;
        let busy = self.transport.activity().busy();
        let next = tokio::time::timeout(idle, self.body.next()).await;
        // A body that is not being read does not count as activity.
        drop(busy);
        if let Ok(received) = &next {
            self.note_received(received.as_ref());
        }
        let error = match next {
            Ok(None) => return None,
            Ok(Some(Ok(bytes))) => {
                let count = bytes.len() as u64;
                self.transport.0.ledger.bytes(&self.entry, count);
                return Some((Ok(bytes), Some(self)));
            }
            Ok(Some(Err(error))) => {
                let words = format!("connection broke while receiving: {}", describe(&error));
                HttpError::new(ErrorKind::Network, words).caused_by(error.without_url())
            }
            Err(_) => {
                let words = format!("nothing received for {} s", idle.as_secs());
                HttpError::new(ErrorKind::Network, words)
            }
        };
        let error = error
            .at(&self.url)
            .about(self.url.host_str().unwrap_or("?"));
        if self.unproven.is_none() {
            return Some((Err(error), None));
        }
        // This failure is not counted as a last attempt, because the reader may request the rest.
        // If this failure makes landfall give up the host, that request would fail too, so the
        // error about the given-up host is returned at once.
        let host = host_port(&self.url);
        let given_up = self
            .transport
            .count_failure(&host, self.sent_at, false, &error);
        Some((Err(given_up.unwrap_or(error)), None))
    }

    /// If enough bytes or the end of the body were received, records that the host responds.
    fn note_received(&mut self, received: Option<&reqwest::Result<Bytes>>) {
        let Some(unproven) = self.unproven else {
            return;
        };
        self.unproven = match received {
            None => None,
            Some(Ok(bytes)) => Some(unproven.saturating_sub(bytes.len() as u64)),
            Some(Err(_)) => Some(unproven),
        }
        .filter(|unproven| *unproven > 0);
        if self.unproven.is_none() {
            self.transport.0.lost_hosts.answered(&host_port(&self.url));
        }
    }
}

impl HttpResponse {
    /// A header as text; `None` if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the `Location` of the response, with bytes that are not ASCII percent-encoded, as
    /// browsers do. If there are several, the first one counts.
    pub fn location(&self) -> Option<String> {
        self.url_headers(LOCATION.as_str()).next()
    }

    /// Returns the values of a header that contains URLs, with bytes that are not ASCII
    /// percent-encoded. Empty values are left out.
    pub fn url_headers(&self, name: &str) -> impl Iterator<Item = String> {
        let encoded = |value: &HeaderValue| {
            let mut text = String::new();
            for &byte in value.as_bytes().trim_ascii() {
                match byte {
                    0x21..=0x7e | b' ' => text.push(char::from(byte)),
                    _ => text += &format!("%{byte:02X}"),
                }
            }
            text
        };
        let values = self.headers.get_all(name).iter().map(encoded);
        values.filter(|text| !text.is_empty())
    }

    /// Returns the body as a stream. A stall longer than the idle limit is an error of kind
    /// `Network`.
    ///
    /// The slot of the host is released as soon as the body ends or fails, even if the stream is
    /// kept: a reader that requests the rest again must not wait for the slot that it holds itself.
    pub fn stream(self) -> ByteStream {
        let unproven = match self.status {
            // A part continues where the last one broke off, so `progress` bytes are enough.
            StatusCode::PARTIAL_CONTENT => Some(self.transport.limits().progress),
            // Only the end of the body shows that the host works: the body may break off at the
            // same byte as in the previous attempt.
            status if status.is_success() => Some(u64::MAX),
            _ => None,
        };
        let incoming = IncomingBody {
            body: self.inner.bytes_stream().boxed(),
            transport: self.transport,
            entry: self.entry,
            url: self.url,
            sent_at: self.sent_at,
            unproven,
            _slot: self.slot,
        };
        futures_util::stream::unfold(Some(incoming), async |incoming| incoming?.next().await)
            .boxed()
    }

    /// Reads a short body to its end, so that the connection can be used again.
    pub async fn discard(self) {
        // A new connection is cheaper than reading a longer body, or than waiting for a host that
        // sends fewer bytes than its `Content-Length`, or sends them one by one.
        const SHORT: usize = 64 << 10;
        const PATIENCE: Duration = Duration::from_secs(5);
        let patience = PATIENCE.min(self.transport.limits().idle);
        let _ = tokio::time::timeout(patience, self.sent_bytes(SHORT)).await;
    }

    /// Reads the whole body into memory, as it was sent.
    ///
    /// # Errors
    /// The errors of [`HttpResponse::stream`]; a body of more than `limit` bytes.
    pub async fn sent_bytes(self, limit: usize) -> Result<Bytes, HttpError> {
        let url = self.url.clone();
        let mut stream = self.stream();
        // No memory is reserved for `Content-Length`, because a server may claim any length.
        let mut body = Vec::new();
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            if body.len() + piece.len() > limit {
                let words = format!("the response is larger than the limit of {limit} bytes");
                return Err(HttpError::new(ErrorKind::Invalid, words).at(&url));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpRequest, RequestPurpose, TransportConfig};
    use landfall_model::Limits;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_body_that_arrives_byte_by_byte_is_discarded_soon() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 16]).unwrap();
            let head = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 60000\r\n\r\n";
            stream.write_all(head).unwrap();
            // until the client closes the connection
            while stream.write_all(b".").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let transport = Transport::new(TransportConfig::direct(Limits {
            idle: Duration::from_millis(200),
            ..Limits::default()
        }));
        let url = url.parse().unwrap();
        let request = HttpRequest::new(Method::GET, url, RequestPurpose::File);
        transport.send(&request).await.unwrap().discard().await;
        // the response, and with it the connection, was dropped
        server.join().unwrap();
    }
}
