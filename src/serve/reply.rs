//! Answers: headers that many of them share, and the distribution API's error body.

use crate::content::ContentError;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::json;

/// An answer as it goes out.
pub(super) type Reply = Response<Body>;

/// Why a request is not answered as wished; becomes an error body (distribution-spec "Error Codes").
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    /// Whether whoever runs the server should hear of it.
    pub(super) tell: bool,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), headers: Vec::new(), tell: false }
    }

    pub(super) fn bad(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn not_found(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn denied(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "DENIED", message)
    }

    pub(super) fn method(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", message)
    }

    /// Something is wrong on the server's side.
    pub(super) fn internal(message: impl Into<String>) -> Problem {
        Problem { tell: true, ..Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", message) }
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Problem {
        self.headers.push((name, value.into()));
        self
    }

    /// As the API's JSON.
    pub(super) fn into_json(self) -> Reply {
        let errors = json!({"errors": [{"code": self.code, "message": self.message}]});
        self.finish("application/json", errors.to_string())
    }

    /// As plain text, for people and for what is not the API.
    pub(super) fn into_text(self) -> Reply {
        let text = format!("{}\n", self.message);
        self.finish("text/plain; charset=utf-8", text)
    }

    fn finish(self, kind: &str, body: String) -> Reply {
        let mut reply = bytes(self.status, kind, body.into_bytes());
        self.headers.into_iter().for_each(|(name, value)| set(&mut reply, name, &value));
        reply
    }
}

impl From<ContentError> for Problem {
    fn from(error: ContentError) -> Problem {
        match error {
            ContentError::Missing { .. } => Problem::not_found("BLOB_UNKNOWN", error.to_string()),
            other => Problem::internal(other.to_string()),
        }
    }
}

/// An answer with a whole body and its length.
pub(super) fn bytes(status: StatusCode, kind: &str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = status;
    set(&mut reply, CONTENT_TYPE, kind);
    set(&mut reply, CONTENT_LENGTH, &body.len().to_string());
    *reply.body_mut() = Body::from(body);
    reply
}

/// An answer of headers alone.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = status;
    if status != StatusCode::NO_CONTENT {
        set(&mut reply, CONTENT_LENGTH, "0");
    }
    reply
}

/// Sets a header. A value that no header can carry is left out.
pub(super) fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}
