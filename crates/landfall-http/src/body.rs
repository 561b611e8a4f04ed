//! Bodies of requests and answers: landfall can send a body again, counts what it receives, and
//! notices a stall.

use super::error::{ErrorKind, HttpError, host_port};
use super::error_causes::causes;
use super::host_limiter::Slot;
use super::ledger::Entry;
use super::transport::Transport;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use tokio::time::Instant;
use url::Url;

/// Bytes as they come.
pub type ByteStream = BoxStream<'static, Result<Bytes, HttpError>>;

/// A request's body. It can be opened as often as attempts need it.
#[derive(Clone)]
pub enum RequestBody {
    /// No body. `Content-Length: 0` is sent where the method usually has one.
    Empty,
    /// A small body in memory.
    Bytes(Bytes),
    /// A large body of known length.
    Stream {
        /// Its length in bytes.
        length: u64,
        /// Opens it from its beginning.
        open: Arc<dyn Fn() -> BoxFuture<'static, Result<ByteStream, HttpError>> + Send + Sync>,
    },
}

/// An answer whose body has not been read.
pub struct HttpResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Where it came from after redirects.
    pub url: Url,
    /// The method of the request.
    pub method: Method,
    /// Whether its host is of the public internet, as far as landfall can tell.
    pub(super) is_public: bool,
    /// The proxy that was used, without credentials.
    pub(super) via: Option<String>,
    /// When it was asked for.
    pub(super) asked: Instant,
    pub(super) inner: reqwest::Response,
    pub(super) transport: Transport,
    pub(super) entry: Entry,
    /// Shared with the body of its request, which lends it.
    pub(super) slot: Option<Arc<Slot>>,
}

/// A body that is being received.
struct Receiving {
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    transport: Transport,
    entry: Entry,
    url: Url,
    asked: Instant,
    /// What a body must bring to be an answer of its host; `None` if the host is known to have
    /// answered.
    lacking: Option<u64>,
    /// Held until the body ends or fails.
    _slot: Option<Arc<Slot>>,
}

impl Receiving {
    /// The next bytes, or the error that the body ends with, and what is still to be received.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<Receiving>)> {
        let (inner, idle) = (&self.transport.0, self.transport.limits().idle);
        let busy = inner.activity.busy();
        let next = tokio::time::timeout(idle, self.body.next()).await;
        drop(busy);
        if let (Some(lacking), Ok(received)) = (self.lacking, &next) {
            self.lacking = match received {
                None => None,
                Some(bytes) => {
                    let came = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    lacking.checked_sub(came).filter(|lacking| *lacking > 0)
                }
            };
            if self.lacking.is_none() {
                inner.lost_hosts.answered(&host_port(&self.url));
            }
        }
        let error = match next {
            Ok(next) => match next? {
                Ok(bytes) => {
                    inner.ledger.bytes(&self.entry, bytes.len() as u64);
                    return Some((Ok(bytes), Some(self)));
                }
                Err(error) => {
                    let words = format!("connection broke while receiving: {}", causes(&error));
                    HttpError::new(ErrorKind::Network, words).caused_by(error.without_url())
                }
            },
            Err(_) => {
                let words = format!("nothing received for {} s", idle.as_secs());
                HttpError::new(ErrorKind::Network, words)
            }
        };
        let error = error
            .at(&self.url)
            .about(self.url.host_str().unwrap_or("?"));
        if self.lacking.is_none() {
            return Some((Err(error), None));
        }
        // the reader may send another request, which fails with the same error if the host is given
        // up
        let given_up = self
            .transport
            .failed(&host_port(&self.url), self.asked, false, &error);
        Some((Err(given_up.unwrap_or(error)), None))
    }
}

impl HttpResponse {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body as a stream. A stall longer than the idle limit is an error of kind
    /// `Network`.
    ///
    /// The slot of the host is released as soon as the body ends or fails, even if the stream is
    /// kept: a reader that asks for the rest with another request must not wait for the slot that
    /// it holds itself.
    pub fn stream(self) -> ByteStream {
        let HttpResponse {
            inner,
            status,
            transport,
            entry,
            slot,
            url,
            asked,
            ..
        } = self;
        let body = inner.bytes_stream().boxed();
        let lacking = match status {
            StatusCode::PARTIAL_CONTENT => Some(transport.limits().progress),
            // it may break off at the same byte as the body before it
            status if status.is_success() => Some(u64::MAX),
            _ => None,
        };
        let receiving = Receiving {
            body,
            transport,
            entry,
            url,
            asked,
            lacking,
            _slot: slot,
        };
        futures_util::stream::unfold(Some(receiving), async |state| state?.next().await).boxed()
    }

    /// Reads a short body to its end, so that the connection can be used again.
    pub async fn discard(self) {
        const SHORT: usize = 64 << 10;
        let _ = self.bytes(SHORT).await;
    }

    /// The whole body, up to `limit` bytes.
    ///
    /// # Errors
    /// As [`HttpResponse::stream`]; and when there is more than `limit`.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, HttpError> {
        let url = self.url.clone();
        let mut stream = self.stream();
        let mut all = Vec::new();
        while let Some(bytes) = stream.next().await {
            let bytes = bytes?;
            if all.len() + bytes.len() > limit {
                let words =
                    format!("the answer is larger than {limit} bytes, the most that it may have");
                return Err(HttpError::new(ErrorKind::Invalid, words).at(&url));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all.into())
    }
}
