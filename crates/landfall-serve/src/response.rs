//! Building responses and errors in the format of the distribution API, their bodies, and the
//! memory of the bodies: reusable buffers, and a limit on all answers in progress.

use crate::connections::RequestPermit;
use crate::router::overloaded;
use crate::state::ServerState;
use crate::writable::WritableStoreError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame};
use landfall_content::{ContentError, is_full_disk};
use landfall_model::locked;
use serde_json::json;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::task::{JoinError, spawn_blocking};

/// `Docker-Content-Digest`: clients compare it with the content that they receive.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// A response of this server.
pub(crate) type ServerResponse = http::Response<Body>;

/// Why a request fails. Becomes the body of the response: JSON for the API (distribution-spec
/// "Error Codes"), text for all other requests.
#[derive(Debug, Clone)]
pub(crate) struct RequestError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// Whether the error is logged: the server, not the client, caused it.
    pub(crate) is_logged: bool,
}

/// A task on a blocking thread that panicked.
impl From<JoinError> for RequestError {
    fn from(error: JoinError) -> RequestError {
        RequestError::internal(error.to_string())
    }
}

impl RequestError {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> RequestError {
        RequestError {
            status,
            code,
            message: message.into(),
            headers: Vec::new(),
            is_logged: false,
        }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> RequestError {
        RequestError::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> RequestError {
        RequestError::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn denied(message: impl Into<String>) -> RequestError {
        RequestError::new(StatusCode::FORBIDDEN, "DENIED", message)
    }

    pub(crate) fn method_not_allowed(message: impl Into<String>) -> RequestError {
        RequestError::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> RequestError {
        RequestError {
            is_logged: true,
            ..RequestError::new(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", message)
        }
    }

    /// The error for a folder of `--writable` that cannot be read or written.
    pub(crate) fn disk(error: io::Error) -> RequestError {
        WritableStoreError::Disk(error).into()
    }

    pub(crate) fn with_header(
        mut self,
        name: HeaderName,
        value: impl Into<String>,
    ) -> RequestError {
        self.headers.push((name, value.into()));
        self
    }

    /// The response for requests to the API.
    pub(crate) fn into_json(self) -> ServerResponse {
        // the format that clients of registries parse and show
        let errors = json!({"errors": [{"code": self.code, "message": self.message}]});
        self.into_response("application/json", errors.to_string())
    }

    /// The response for all other requests.
    pub(crate) fn into_text(self) -> ServerResponse {
        let text = format!("{}\n", self.message);
        self.into_response("text/plain; charset=utf-8", text)
    }

    fn into_response(self, content_type: &str, body: String) -> ServerResponse {
        let mut response = response_with_body(self.status, content_type, body.into_bytes());
        for (name, value) in self.headers {
            set_header(&mut response, name, &value);
        }
        response
    }
}

impl From<ContentError> for RequestError {
    fn from(error: ContentError) -> RequestError {
        match error {
            ContentError::Missing { .. } => {
                RequestError::not_found("BLOB_UNKNOWN", error.to_string())
            }
            // damaged or unreadable content is the server's fault, so it is logged
            other => RequestError::internal(other.to_string()),
        }
    }
}

impl From<WritableStoreError> for RequestError {
    fn from(error: WritableStoreError) -> RequestError {
        let message = error.to_string();
        match error {
            WritableStoreError::WrongDigest { .. } => {
                RequestError::bad_request("DIGEST_INVALID", message)
            }
            WritableStoreError::Full { .. } | WritableStoreError::InUse { .. } => {
                RequestError::denied(message)
            }
            WritableStoreError::Disk(error) if is_full_disk(&error) => RequestError {
                // RFC 4918 §11.5; clients do not repeat the request at once, as they do after 500
                status: StatusCode::INSUFFICIENT_STORAGE,
                ..RequestError::internal(message)
            },
            WritableStoreError::Disk(_) => RequestError::internal(message),
        }
    }
}

/// A response with this body, its media type and its length.
pub(crate) fn response_with_body(
    status: StatusCode,
    content_type: &str,
    body: impl Into<Bytes>,
) -> ServerResponse {
    let body = body.into();
    let mut response = ServerResponse::new(Body::default());
    *response.status_mut() = status;
    set_header(&mut response, CONTENT_TYPE, content_type);
    set_header(&mut response, CONTENT_LENGTH, &body.len().to_string());
    *response.body_mut() = full_body(body);
    response
}

/// A response whose body is made piece by piece while it is sent.
pub(crate) fn response_in_pieces(
    content_type: &str,
    pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> ServerResponse {
    let pieces = stream::iter(pieces.map(Ok::<_, Infallible>));
    let mut response = ServerResponse::new(streamed_body(pieces));
    set_header(&mut response, CONTENT_TYPE, content_type);
    response
}

/// A response without a body.
pub(crate) fn empty_response(status: StatusCode) -> ServerResponse {
    let mut response = ServerResponse::new(Body::default());
    *response.status_mut() = status;
    // RFC 9110 §8.6: a 204 response must not have Content-Length
    if status != StatusCode::NO_CONTENT {
        set_header(&mut response, CONTENT_LENGTH, "0");
    }
    response
}

/// Sets a header, unless `value` contains characters that a header must not contain.
pub(crate) fn set_header(response: &mut ServerResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Runs `work`, which may wait for a disk, on the thread pool for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestError> {
    Ok(spawn_blocking(work).await?)
}

// The bodies of requests and responses.

/// The error of a body, such as that of a connection, or of a limit.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body of any type.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Returns `body` as a body of any type.
pub(crate) fn boxed_body<B>(body: B) -> Body
where
    B: HttpBody<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

/// Returns a body of these bytes, whose length is known.
pub(crate) fn full_body(bytes: impl Into<Bytes>) -> Body {
    boxed_body(Full::new(bytes.into()))
}

/// Returns a body that consists of `pieces`. An error aborts the connection.
pub(crate) fn streamed_body<B, E>(pieces: impl Stream<Item = Result<B, E>> + Send + 'static) -> Body
where
    B: Into<Bytes> + 'static,
    E: Into<BodyError> + 'static,
{
    let frames = pieces.map(|piece| match piece {
        Ok(bytes) => Ok(Frame::data(bytes.into())),
        Err(error) => Err(error.into()),
    });
    StreamBody::new(frames).boxed_unsync()
}

// Reusable buffers for the pieces of response bodies. Allocating fresh memory would take as long
// as reading the content into it, because the system clears fresh memory page by page.

/// The number of free buffers that are kept.
const MAX_FREE: usize = 64;

/// A pool of buffers of one size.
pub(crate) struct BodyBuffers {
    size: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

/// A buffer that returns to its pool when it is dropped.
pub(crate) struct BodyBuffer {
    bytes: Box<[u8]>,
    pool: Arc<BodyBuffers>,
}

impl BodyBuffers {
    /// A pool of buffers of `size` bytes.
    pub(crate) fn new(size: usize) -> Arc<BodyBuffers> {
        Arc::new(BodyBuffers {
            size,
            free: Mutex::default(),
        })
    }

    /// Takes a buffer; its content is unspecified.
    pub(crate) fn take(self: &Arc<BodyBuffers>) -> BodyBuffer {
        let free = locked(&self.free).pop();
        BodyBuffer {
            // allocated after the lock is released, because the allocation may take long
            bytes: free.unwrap_or_else(|| vec![0; self.size].into()),
            pool: self.clone(),
        }
    }
}

impl BodyBuffer {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for BodyBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BodyBuffer {
    fn drop(&mut self) {
        let mut free = locked(&self.pool.free);
        // a burst of clients must not keep its memory forever
        if free.len() < MAX_FREE {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// The limit in KiB.
pub(crate) const ANSWER_MEMORY: usize = 512 << 10;
/// The number of documents that are built, or wait for memory, at once.
pub(crate) const DOCUMENTS: usize = 16;
/// The size in bytes up to which a document does not count: a connection has buffers of this size
/// anyway. It is also the size of the pieces in which a document is sent.
const PIECE: usize = 64 << 10;

/// Waits until the answers in progress leave room for one that needs `bytes` of memory. Meanwhile,
/// closes connections whose clients are stalled.
pub(crate) async fn answer_permit(
    state: &ServerState,
    bytes: u64,
) -> Result<RequestPermit, RequestError> {
    let permit = state
        .answer_memory
        .enter(&state.connections, bytes.div_ceil(1024))
        .await;
    permit.ok_or_else(|| {
        overloaded(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large answers are in progress",
        )
    })
}

/// Returns `response`, whose body is a document in memory, when there is room for it.
pub(crate) async fn within_answer_memory(
    state: &ServerState,
    response: ServerResponse,
) -> Result<ServerResponse, RequestError> {
    let size = response.body().size_hint().exact().unwrap_or_default();
    if size <= PIECE as u64 {
        return Ok(response);
    }
    let permit = answer_permit(state, size).await?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|error| RequestError::internal(error.to_string()))?;
    let bytes = body.to_bytes();
    Ok(ServerResponse::from_parts(parts, held_body(bytes, permit)))
}

/// A body of `bytes` that holds `permit` until its last piece.
fn held_body(bytes: Bytes, permit: RequestPermit) -> Body {
    let pieces = stream::unfold((bytes, permit), async |(mut bytes, permit)| {
        if bytes.is_empty() {
            return None;
        }
        let piece = bytes.split_to(bytes.len().min(PIECE));
        Some((Ok::<_, Infallible>(piece), (bytes, permit)))
    });
    streamed_body(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::{ConnectionTable, RequestLimiter};
    use std::time::Duration;

    #[tokio::test]
    async fn a_document_counts_until_its_last_piece_is_sent_or_its_client_is_gone() {
        let connections = ConnectionTable::new(1, Duration::from_secs(9), Duration::from_secs(9));
        let memory = RequestLimiter::new(ANSWER_MEMORY);
        let bytes = Bytes::from(vec![7; 3 * PIECE + 1]);
        let body = async || {
            let size = bytes.len().div_ceil(1024) as u64;
            let permit = memory.enter(&connections, size).await.unwrap();
            held_body(bytes.clone(), permit).into_data_stream()
        };
        let mut sent = body().await;
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            received.extend(sent.next().await.unwrap().unwrap());
            assert_eq!(memory.count(), 193);
        }
        assert_eq!(received, bytes);
        assert!(sent.next().await.is_none());
        assert_eq!(memory.count(), 0);
        let mut broken = body().await;
        broken.next().await.unwrap().unwrap();
        drop(broken);
        assert_eq!(memory.count(), 0);
    }
}
