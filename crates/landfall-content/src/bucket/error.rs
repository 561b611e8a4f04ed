//! Turns errors of the crate `object_store` into errors of the transport, with messages for users.

use landfall_http::{ErrorKind, HttpError};
use std::error::Error as _;

/// The codes with which S3, Google and Azure say that the bucket itself does not exist.
const MISSING_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// Whether a response says that the bucket itself does not exist. A response to HEAD never does,
/// because it has no body.
pub(super) fn is_missing_bucket(error: &object_store::Error) -> bool {
    let text = error.to_string();
    element(&text, "Code").is_some_and(|code| MISSING_BUCKET.contains(&code))
}

/// Returns the error of a failed request for `location`, an object or a folder.
pub(super) fn request_error(location: &str, error: object_store::Error) -> HttpError {
    // an error of the transport already says which host failed and why
    if let Some(own) = own_cause(&error) {
        return own.about(location);
    }
    // the crate offers neither status nor body of a response, only its message
    let text = error.to_string();
    let code = element(&text, "Code");
    let message = element(&text, "Message");
    let detail = match (code, message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => status(&text)
            .map(|status| status.to_string())
            .unwrap_or_default(),
    };
    let (kind, words) = match &error {
        object_store::Error::NotFound { .. } => (ErrorKind::NotFound, "not found"),
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            (ErrorKind::Denied, "the object store denies access")
        }
        _ => match status(&text) {
            Some(status) => (
                ErrorKind::Status(status),
                "the object store refuses the request",
            ),
            None if code.is_some() => (ErrorKind::Invalid, "the object store refuses the request"),
            None => return HttpError::new(ErrorKind::Local, text).about(location),
        },
    };
    // S3 and Azure report lost parts with different codes and statuses
    let (kind, words) = match code {
        // treated as if the upload were gone, since it can no longer be completed
        Some("InvalidPart" | "InvalidPartOrder" | "InvalidBlockList" | "EntityTooSmall") => (
            ErrorKind::NotFound,
            "the object store lacks parts of the upload that were recorded as uploaded",
        ),
        _ => (kind, words),
    };
    let words = match code {
        Some(code) if MISSING_BUCKET.contains(&code) => {
            "the bucket does not exist; create it first"
        }
        Some("RequestTimeTooSkewed") => {
            "the clocks of this machine and the object store differ; correct the time"
        }
        _ => words,
    };
    let detail = if detail.is_empty() {
        String::new()
    } else {
        format!(" ({detail})")
    };
    HttpError::new(kind, format!("{words}{detail}")).about(location)
}

/// Returns the error of the transport if it is the cause.
fn own_cause(error: &object_store::Error) -> Option<HttpError> {
    let mut cause = error.source();
    while let Some(now) = cause {
        if let Some(own) = now.downcast_ref::<HttpError>() {
            return Some(own.clone());
        }
        cause = now.source();
    }
    None
}

/// Returns the text of an XML element in an error of S3 or Azure, which `object_store` includes in
/// its message.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0.trim()).filter(|text| !text.is_empty())
}

/// Returns the status code in a message of `object_store`.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    // three digits, such as in "status code: 403 Forbidden"
    rest.get(..3)?.parse().ok()
}
