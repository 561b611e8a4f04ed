//! Bodies of requests and responses. landfall can send a body again, counts the bytes that it
//! receives, and notices a stall.

use crate::error::{ErrorKind, HttpError, describe, host_port};
use crate::host_limiter::{HostSlot, lend_while_waiting};
use crate::ledger::{Contact, Ledger};
use crate::transport::Transport;
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either};
use futures_util::stream::{BoxStream, StreamExt};
use landfall_model::locked;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION, TRANSFER_ENCODING};
use reqwest::{Method, StatusCode};
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;
use tracing::info;
use url::Url;

/// The bytes of a body, in pieces as they arrive. The stream ends after the first error.
pub type ByteStream = BoxStream<'static, Result<Bytes, HttpError>>;

/// The body of a request. It can be opened again for each attempt.
#[derive(Clone)]
pub enum RequestBody {
    /// No body. `Content-Length: 0` is sent if the method usually has a body.
    Empty,
    /// A body in memory.
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
    /// What was read of the body to see what it is: its first bytes, or the error in their place.
    pub(super) beginning: Option<reqwest::Result<Bytes>>,
    pub(super) transport: Transport,
    /// The line of the ledger.
    pub(super) contact: Contact,
    /// Shared with the body of the request, which lends the slot while its source returns no bytes.
    pub(super) slot: Option<Arc<HostSlot>>,
}

/// A body that is being received.
struct IncomingBody {
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    transport: Transport,
    contact: Contact,
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
                self.transport.0.ledger.bytes(&self.contact, count);
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

    /// The length of the body in bytes by `Content-Length`. `None` if the header is missing or
    /// invalid, or if the body is sent in chunks, which overrides it (RFC 9112, 6.3).
    pub fn content_length(&self) -> Option<u64> {
        let coding = self.header(TRANSFER_ENCODING.as_str()).unwrap_or_default();
        if coding.to_ascii_lowercase().contains("chunked") {
            return None;
        }
        self.header(CONTENT_LENGTH.as_str())?.parse().ok()
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
        let beginning = futures_util::stream::iter(self.beginning);
        let incoming = IncomingBody {
            body: beginning.chain(self.inner.bytes_stream()).boxed(),
            transport: self.transport,
            contact: self.contact,
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
                return Err(too_large(&url, limit));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}

/// Returns the error for a response of more than `limit` bytes.
pub(super) fn too_large(url: &Url, limit: usize) -> HttpError {
    let words = format!("the response is larger than the limit of {limit} bytes");
    HttpError::new(ErrorKind::Invalid, words).at(url)
}

// Resumes a download at an offset by `Range`, or from the start if the host does not support it.

impl Transport {
    /// Records that the host of this URL responds wrongly to `Range`. The host gets no `Range`
    /// again in this run.
    pub fn distrust_ranges(&self, url: &Url) {
        let host = host_port(url);
        info!(
            host,
            "its responses to Range are wrong; no range is requested again"
        );
        locked(&self.0.wrong_ranges).insert(host);
    }

    fn trusts_ranges(&self, url: &Url) -> bool {
        !locked(&self.0.wrong_ranges).contains(&host_port(url))
    }
}

/// Requests content of `size` bytes at `url` from `offset` on. `send` gets the value of the `Range`
/// header, or `None`.
///
/// Returns the offset at which the response starts, and the response. The offset is 0 if the server
/// ignores `Range` (RFC 9110, 14.2). If the server refuses the range or answers with another part,
/// the whole content is requested. The host then gets no `Range` again in this run, unless it
/// refused the range because its content has another size.
///
/// # Errors
/// The errors of `send`.
pub async fn send_from_offset<F>(
    transport: &Transport,
    url: &Url,
    offset: u64,
    size: u64,
    send: impl Fn(Option<String>) -> F,
) -> Result<(u64, HttpResponse), HttpError>
where
    F: Future<Output = Result<HttpResponse, HttpError>>,
{
    if offset > 0 && transport.trusts_ranges(url) {
        let response = send(Some(format!("bytes={offset}-"))).await?;
        match response.status {
            StatusCode::PARTIAL_CONTENT
                if is_rest(response.header("content-range"), offset, size) =>
            {
                return Ok((offset, response));
            }
            // The host's content has another size, so the refusal may be right.
            StatusCode::RANGE_NOT_SATISFIABLE
                if response
                    .header("content-range")
                    .and_then(total_of_unsatisfied)
                    .is_some_and(|total| total != size) => {}
            // The response is dropped with its connection instead of being read. docker-registry
            // 2.8 sends a 416 with the `Content-Length` of the whole blob and a short body.
            StatusCode::PARTIAL_CONTENT
            | StatusCode::BAD_REQUEST
            | StatusCode::RANGE_NOT_SATISFIABLE => {
                transport.distrust_ranges(url);
            }
            // Some firewalls refuse requests for a part, because they cannot scan it.
            StatusCode::FORBIDDEN
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => {
                drop(response);
                let whole = send(None).await?;
                if whole.status.is_success() {
                    transport.distrust_ranges(url);
                }
                return Ok((0, whole));
            }
            // 200 with the whole content, or an error for the caller
            _ => return Ok((0, response)),
        }
    }
    Ok((0, send(None).await?))
}

/// Whether a `Content-Range` is the part from `offset` to the end of `size` bytes. Its total may be
/// `*` (RFC 9110, 14.4).
fn is_rest(range: Option<&str>, offset: u64, size: u64) -> bool {
    let Some((start, end, total)) = range.and_then(parse_content_range) else {
        return false;
    };
    // the end is checked too, because a shorter part would look like the end of the content
    start == offset
        && end.checked_add(1) == Some(size)
        && (total == "*" || total.parse() == Ok(size))
}

impl HttpResponse {
    /// Whether the body is a part of the content. Some caches store the response to a range, and
    /// send it to requests without one, perhaps with status 200.
    pub fn is_part(&self) -> bool {
        let range = self.header("content-range").and_then(parse_content_range);
        let known =
            range.and_then(|(start, end, total)| Some((start, end, total.parse::<u64>().ok()?)));
        match known {
            Some((start, end, total)) => start > 0 || end.saturating_add(1) < total,
            None => self.status == StatusCode::PARTIAL_CONTENT,
        }
    }
}

/// Parses `bytes FIRST-LAST/TOTAL` into first byte, last byte and total.
fn parse_content_range(range: &str) -> Option<(u64, u64, &str)> {
    let (span, total) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = span.split_once('-')?;
    Some((
        start.trim().parse().ok()?,
        end.trim().parse().ok()?,
        total.trim(),
    ))
}

/// Parses `bytes */TOTAL`, the range of a response with status 416 (RFC 9110, 15.5.17).
fn total_of_unsatisfied(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes */")?.parse().ok()
}

/// Watches the body of one upload.
#[derive(Clone)]
pub(super) struct UploadWatch(Arc<Mutex<UploadState>>);

struct UploadState {
    /// The error that the source ended with.
    failure: Option<HttpError>,
    /// The time at which the connection last requested bytes.
    moved: Instant,
    /// Whether the connection waits for bytes of the source, which has a timeout of its own.
    waits_for_source: bool,
    /// The number of bytes that the source has not returned yet.
    left: u64,
}

/// The largest piece in which a body in memory is sent, in bytes.
const SENT_PIECE: usize = 64 << 10;

/// Returns a body in memory as a stream of pieces, so that its progress can be watched.
pub(super) fn in_pieces(mut bytes: Bytes) -> ByteStream {
    let next = move || {
        let piece = bytes.split_to(bytes.len().min(SENT_PIECE));
        (!piece.is_empty()).then_some(Ok(piece))
    };
    futures_util::stream::iter(std::iter::from_fn(next)).boxed()
}

/// Lends the slot of an upload while the source of its body, `stream`, returns no bytes.
///
/// The client may keep the body after its response has ended, so the body holds only a weak
/// reference to the slot.
pub(super) fn lend_while_source_waits(stream: ByteStream, slot: Weak<HostSlot>) -> ByteStream {
    futures_util::stream::unfold((stream, slot), async |(mut stream, slot)| {
        let next = match slot.upgrade() {
            Some(slot) => lend_while_waiting(&*slot, stream.next()).await,
            None => stream.next().await,
        };
        next.map(|next| (next, (stream, slot)))
    })
    .boxed()
}

/// Returns a request body that reads `stream`, and a watch on the body. The bytes of `stream` are
/// added to the line of `contact` in the ledger.
pub(super) fn watch_upload(
    mut stream: ByteStream,
    length: u64,
    ledger: Arc<Ledger>,
    contact: Contact,
) -> (reqwest::Body, UploadWatch) {
    let state = UploadState {
        failure: None,
        moved: Instant::now(),
        waits_for_source: false,
        left: length,
    };
    let watch = UploadWatch(Arc::new(Mutex::new(state)));
    let seen = watch.clone();
    // the connection polls the body whenever it can send more: the time of the last poll shows
    // whether the upload makes progress
    let stream = futures_util::stream::poll_fn(move |context| {
        let next = stream.poll_next_unpin(context);
        let mut state = locked(&seen.0);
        state.waits_for_source = next.is_pending();
        state.moved = Instant::now();
        match &next {
            Poll::Ready(Some(Ok(bytes))) => {
                state.left = state.left.saturating_sub(bytes.len() as u64);
                ledger.bytes(&contact, bytes.len() as u64);
            }
            Poll::Ready(Some(Err(error))) => state.failure = Some(error.clone()),
            Poll::Ready(None) | Poll::Pending => {}
        }
        drop(state);
        next
    });
    (reqwest::Body::wrap_stream(stream), watch)
}

impl UploadWatch {
    /// Returns the error of the source, if it failed.
    pub(super) fn failure(&self) -> Option<HttpError> {
        locked(&self.0).failure.clone()
    }

    /// Returns an error once the connection has accepted no bytes for `idle`, or no response has
    /// arrived for `answer` after the last byte. Time in which the source has no bytes does not
    /// count.
    pub(super) async fn stalled(&self, idle: Duration, answer: Duration) -> HttpError {
        loop {
            let (end, is_sent) = {
                let state = locked(&self.0);
                let moved = if state.waits_for_source && state.left > 0 {
                    Instant::now()
                } else {
                    state.moved
                };
                let is_sent = state.left == 0;
                (moved + if is_sent { answer } else { idle }, is_sent)
            };
            if end <= Instant::now() {
                return if is_sent {
                    no_response(answer)
                } else {
                    HttpError::new(ErrorKind::Network, "the upload stalled")
                };
            }
            // the end moves with each byte, so it is computed again after the wait
            tokio::time::sleep_until(end).await;
        }
    }
}

/// Returns the error for a request that got no response within this time.
pub(super) fn no_response(patience: Duration) -> HttpError {
    let words = format!("no response within {} s", patience.as_secs());
    HttpError::new(ErrorKind::Network, words)
}

// Marks requests whose response becomes the body of an upload.

tokio::task_local! {
    static READS_FOR_UPLOAD: ();
}

/// Whether this task reads for an upload.
pub(super) fn is_reading_for_upload() -> bool {
    READS_FOR_UPLOAD.try_with(|()| ()).is_ok()
}

/// Marks the requests that `opening` sends to open the source of an upload.
pub async fn read_for_upload<T>(opening: impl Future<Output = T>) -> T {
    READS_FOR_UPLOAD.scope((), opening).await
}

/// Marks the requests that `stream` sends, for example to resume a response that broke off.
pub fn stream_for_upload(mut stream: ByteStream) -> ByteStream {
    // a stream is polled by reqwest, outside of any scope, so each poll sets the mark itself
    futures_util::stream::poll_fn(move |context| {
        READS_FOR_UPLOAD.sync_scope((), || stream.poll_next_unpin(context))
    })
    .boxed()
}

/// Copies the mark of the current task to `task`, which is going to be spawned.
pub fn inherit_upload_mark<T>(
    task: impl Future<Output = T> + Send,
) -> impl Future<Output = T> + Send {
    if is_reading_for_upload() {
        Either::Left(READS_FOR_UPLOAD.scope((), task))
    } else {
        Either::Right(task)
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
        let limits = Limits {
            idle: Duration::from_millis(200),
            ..Limits::default()
        };
        let transport = Transport::new(TransportConfig {
            limits,
            ..TransportConfig::default()
        });
        let url = url.parse().unwrap();
        let request = HttpRequest::new(Method::GET, url, RequestPurpose::File);
        transport.send(&request).await.unwrap().discard().await;
        // the response, and with it the connection, was dropped
        server.join().unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_body_that_is_sent_slowly_takes_longer_than_the_wait_for_a_response() {
        const SIZE: usize = 32 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut piece = vec![0; 256 << 10];
            for _ in 0..SIZE / piece.len() {
                stream.read_exact(&mut piece).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
            stream
                .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            // until the client closes the connection
            while stream.read(&mut piece).is_ok_and(|count| count > 0) {}
        });
        let limits = Limits {
            first_byte: Duration::from_secs(2),
            attempts: 1,
            ..Limits::default()
        };
        let transport = Transport::new(TransportConfig {
            limits,
            ..TransportConfig::default()
        });
        let mut request = HttpRequest::new(
            Method::PUT,
            url.parse().unwrap(),
            RequestPurpose::ObjectStore,
        );
        request.body = RequestBody::Bytes(vec![0; SIZE].into());
        let began = Instant::now();
        let response = transport.send(&request).await.unwrap();
        assert_eq!(response.status, StatusCode::CREATED);
        assert!(began.elapsed() > transport.limits().first_byte);
    }

    #[test]
    fn only_the_rest_of_the_same_content_is_accepted() {
        let good = |range| is_rest(Some(range), 10, 100);
        assert!(good("bytes 10-99/100") && good("bytes 10-99/*"));
        for wrong in [
            "bytes 9-99/100",
            "bytes 10-98/100",
            "bytes 10-99/101",
            "10-99/100",
            "bytes */100",
            "",
        ] {
            assert!(!good(wrong), "{wrong}");
        }
        assert!(!is_rest(None, 10, 100));
    }

    #[test]
    fn the_size_in_a_refusal_of_a_range_is_parsed() {
        assert_eq!(total_of_unsatisfied("bytes */96"), Some(96));
        for other in ["bytes */*", "bytes 0-95/96", "*/96", ""] {
            assert_eq!(total_of_unsatisfied(other), None, "{other}");
        }
    }
}
