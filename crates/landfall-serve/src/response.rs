//! Responses: how they are built, and errors as the distribution API sends them.

use super::writable::KeepError;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use landfall_content::ContentError;
use serde_json::json;
use std::io;
use tokio::task::spawn_blocking;

/// `Docker-Content-Digest`, which clients compare with the content that they get.
pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// A response of this server.
pub(super) type Response = axum::http::Response<Body>;

/// Why a request fails. It becomes the error body of the API (distribution-spec "Error Codes").
#[derive(Debug)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    /// Whether the server logs it: the fault is on its own side.
    pub(super) log: bool,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> ApiError {
        ApiError {
            status,
            code,
            message: message.into(),
            headers: Vec::new(),
            log: false,
        }
    }

    pub(super) fn bad(code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn not_found(code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn denied(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "DENIED", message)
    }

    pub(super) fn method(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", message)
    }

    /// The fault is on the server's side.
    pub(super) fn internal(message: impl Into<String>) -> ApiError {
        ApiError {
            log: true,
            ..ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", message)
        }
    }

    /// The folder of `--writable` cannot be read or written.
    pub(super) fn disk(error: io::Error) -> ApiError {
        KeepError::Disk(error).into()
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> ApiError {
        self.headers.push((name, value.into()));
        self
    }

    /// As the API's JSON.
    pub(super) fn into_json(self) -> Response {
        let errors = json!({"errors": [{"code": self.code, "message": self.message}]});
        self.finish("application/json", errors.to_string())
    }

    /// As plain text, for requests outside of the API.
    pub(super) fn into_text(self) -> Response {
        let text = format!("{}\n", self.message);
        self.finish("text/plain; charset=utf-8", text)
    }

    fn finish(self, kind: &str, body: String) -> Response {
        let mut response = bytes(self.status, kind, body.into_bytes());
        self.headers
            .into_iter()
            .for_each(|(name, value)| set(&mut response, name, &value));
        response
    }
}

impl From<ContentError> for ApiError {
    fn from(error: ContentError) -> ApiError {
        match error {
            ContentError::Missing { .. } => ApiError::not_found("BLOB_UNKNOWN", error.to_string()),
            other => ApiError::internal(other.to_string()),
        }
    }
}

impl From<KeepError> for ApiError {
    fn from(error: KeepError) -> ApiError {
        match error {
            KeepError::Digest { .. } => ApiError::bad("DIGEST_INVALID", error.to_string()),
            KeepError::Full { .. } | KeepError::Needed { .. } => {
                ApiError::denied(error.to_string())
            }
            KeepError::Disk(_) => ApiError::internal(error.to_string()),
        }
    }
}

/// A response with this body and its length.
pub(super) fn bytes(status: StatusCode, kind: &str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, kind);
    set(&mut response, CONTENT_LENGTH, &body.len().to_string());
    *response.body_mut() = Body::from(body);
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    if status != StatusCode::NO_CONTENT {
        set(&mut response, CONTENT_LENGTH, "0");
    }
    response
}

/// Sets a header. A value that a header cannot hold is left out.
pub(super) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Runs work that may wait for a disk on a thread for blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work)
        .await
        .map_err(|stopped| ApiError::internal(stopped.to_string()))
}
