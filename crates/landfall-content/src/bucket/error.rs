//! What an object store refused, as an error of the transport with words for people.

use landfall_http::{ErrorKind, HttpError};
use std::error::Error as _;

/// The error for `what`, the location of an object or folder.
pub(super) fn failed(what: &str, error: object_store::Error) -> HttpError {
    if let Some(own) = own_cause(&error) {
        return own.about(what);
    }
    let text = error.to_string();
    let (code, message) = (element(&text, "Code"), element(&text, "Message"));
    let said = match (code, message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => status(&text)
            .map(|status| status.to_string())
            .unwrap_or_default(),
    };
    let (kind, words) = match &error {
        object_store::Error::NotFound { .. } => (ErrorKind::NotFound, "it is not there"),
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            (ErrorKind::Denied, "the object store refuses us")
        }
        _ => match status(&text) {
            Some(status) => (ErrorKind::Status(status), "the object store refuses it"),
            None if code.is_some() => (ErrorKind::Invalid, "the object store refuses it"),
            None => return HttpError::new(ErrorKind::Local, text).about(what),
        },
    };
    let (kind, words) = match code {
        // as if the upload were gone: it cannot be completed any more
        Some("InvalidPart" | "InvalidPartOrder" | "InvalidBlockList" | "EntityTooSmall") => (
            ErrorKind::NotFound,
            "it does not have the parts that the upload was recorded with",
        ),
        _ => (kind, words),
    };
    let words = match code {
        Some("NoSuchBucket") => "there is no such bucket; make it first, landfall makes none",
        Some("RequestTimeTooSkewed") => {
            "the clock of this machine differs from the object store's; set it right"
        }
        _ => words,
    };
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(" ({said})")
    };
    HttpError::new(kind, format!("{words}{said}")).about(what)
}

/// The transport's own error, where it is the cause.
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

/// The text of an element of S3's and Azure's errors, which `object_store` shows as they came.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0.trim()).filter(|text| !text.is_empty())
}

/// The status in `object_store`'s text.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}
