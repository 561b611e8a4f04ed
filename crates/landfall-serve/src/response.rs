//! Building responses, and errors in the format of the distribution API.

use crate::writable::WritableStoreError;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use futures_util::stream;
use landfall_content::ContentError;
use serde_json::json;
use std::convert::Infallible;
use std::io;
use tokio::task::spawn_blocking;

/// `Docker-Content-Digest`: clients compare it with the content that they receive.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// A response of this server.
pub(crate) type ServerResponse = axum::http::Response<Body>;

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
    let mut response = ServerResponse::new(Body::empty());
    *response.status_mut() = status;
    set_header(&mut response, CONTENT_TYPE, content_type);
    set_header(&mut response, CONTENT_LENGTH, &body.len().to_string());
    *response.body_mut() = Body::from(body);
    response
}

/// A response whose body is made piece by piece while it is sent.
pub(crate) fn response_in_pieces(
    content_type: &str,
    pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> ServerResponse {
    let pieces = stream::iter(pieces.map(Ok::<_, Infallible>));
    let mut response = ServerResponse::new(Body::from_stream(pieces));
    set_header(&mut response, CONTENT_TYPE, content_type);
    response
}

/// A response without a body.
pub(crate) fn empty_response(status: StatusCode) -> ServerResponse {
    let mut response = ServerResponse::new(Body::empty());
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
    spawn_blocking(work)
        .await
        .map_err(|stopped| RequestError::internal(stopped.to_string()))
}
