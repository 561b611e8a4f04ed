//! The URL of a folder in an object store, such as `s3://bucket/prefix`.

use landfall_http::{ErrorKind, HttpError};
use landfall_model::is_file_name;
use std::error::Error as _;
use std::fmt;
use std::str::FromStr;

/// The protocol of an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketProtocol {
    /// Amazon S3 and compatible stores.
    S3,
    /// Google Cloud Storage, with the scheme `gs://`.
    Google,
    /// Azure Blob Storage, with the scheme `az://`.
    Azure,
}

/// The schemes of URLs with their protocols.
const SCHEMES: [(&str, BucketProtocol); 3] = [
    ("s3://", BucketProtocol::S3),
    ("gs://", BucketProtocol::Google),
    ("az://", BucketProtocol::Azure),
];

/// The location of a folder or an object in an object store: `s3://bucket/prefix`,
/// `gs://bucket/prefix` or `az://container/prefix`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BucketLocation {
    /// The protocol of the store.
    pub protocol: BucketProtocol,
    /// The name of the bucket or container.
    pub bucket: String,
    /// The key of the object or the prefix of the folder, without a slash at either end; may be
    /// empty.
    pub key: String,
}

impl BucketLocation {
    /// Whether a string begins with the scheme of an object store, even if the rest is invalid.
    pub fn has_scheme(text: &str) -> bool {
        SCHEMES.iter().any(|(scheme, _)| text.starts_with(scheme))
    }

    /// Splits the location of an object into its folder and its name.
    pub fn split(&self) -> (BucketLocation, &str) {
        let (folder, name) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        (
            BucketLocation {
                key: folder.to_owned(),
                ..self.clone()
            },
            name,
        )
    }
}

impl FromStr for BucketLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<BucketLocation, String> {
        parse(text).ok_or_else(|| {
            format!(
                "'{text}' is not a location in an object store: write s3://BUCKET/PREFIX, \
                 gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
            )
        })
    }
}

fn parse(text: &str) -> Option<BucketLocation> {
    let (rest, protocol) = SCHEMES
        .iter()
        .find_map(|(scheme, protocol)| Some((text.strip_prefix(scheme)?, *protocol)))?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let key = key.trim_end_matches('/');
    let is_bucket_name = !bucket.is_empty()
        && bucket
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_key = key.is_empty() || key.split('/').all(is_key_part);
    (is_bucket_name && is_key).then(|| BucketLocation {
        protocol,
        bucket: bucket.into(),
        key: key.into(),
    })
}

/// Whether a part of a key is safe: `..` and empty parts would address other keys than the user
/// sees.
fn is_key_part(part: &str) -> bool {
    is_file_name(part) && !part.contains(char::is_control)
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = SCHEMES
            .iter()
            .find(|(_, protocol)| *protocol == self.protocol)
            .map_or("", |(scheme, _)| scheme);
        let slash = if self.key.is_empty() { "" } else { "/" };
        write!(f, "{scheme}{}{slash}{}", self.bucket, self.key)
    }
}

// Turns errors of the crate `object_store` into errors of the transport, with messages for users.

/// The codes with which S3, Google and Azure say that the bucket itself does not exist.
const MISSING_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// The message of the crate for a redirect without a target, with which S3 answers if the bucket is
/// in another region.
const OTHER_REGION: &str = "Received redirect without LOCATION";

/// Whether a response says that the bucket itself does not exist. A response to HEAD never does,
/// because it has no body.
pub(super) fn is_missing_bucket(error: &object_store::Error) -> bool {
    let text = error.to_string();
    element(&text, "Code").is_some_and(|code| MISSING_BUCKET.contains(&code))
}

/// Whether a response says that the store lacks a feature of the protocol.
pub(super) fn is_not_implemented(error: &object_store::Error) -> bool {
    element(&error.to_string(), "Code") == Some("NotImplemented")
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
            let words = match code {
                Some(_) => "the object store denies access",
                // the answer of S3 to HEAD, which has no body
                None => {
                    "the object store denies access, or the object does not exist and the account \
                     may not list the bucket"
                }
            };
            (ErrorKind::Denied, words)
        }
        _ if text.contains(OTHER_REGION)
            || code == Some("AuthorizationHeaderMalformed")
                && message.is_some_and(|message| message.contains("; expecting ")) =>
        {
            (
                ErrorKind::Invalid,
                "the bucket is in another region; set AWS_REGION to its region",
            )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_in_another_region_is_explained() {
        let refused = |code: &str, message: &str| {
            format!(
                "Server returned non-2xx status code: 400 Bad Request: <Error><Code>{code}</Code>\
                 <Message>{message}</Message></Error>"
            )
        };
        let other_region = "the bucket is in another region; set AWS_REGION to its region";
        for (text, expected) in [
            (
                format!("{OTHER_REGION}, this normally indicates an incorrectly configured region"),
                other_region.to_owned(),
            ),
            (
                refused(
                    "AuthorizationHeaderMalformed",
                    "the region 'us-east-1' is wrong; expecting 'eu-central-1'",
                ),
                format!(
                    "{other_region} (AuthorizationHeaderMalformed: the region 'us-east-1' is \
                     wrong; expecting 'eu-central-1')"
                ),
            ),
            (
                refused("AuthorizationHeaderMalformed", "no date"),
                "the object store refuses the request (AuthorizationHeaderMalformed: no date)"
                    .to_owned(),
            ),
        ] {
            let error = object_store::Error::Generic {
                store: "S3",
                source: text.into(),
            };
            let error = request_error("s3://b/air", error);
            assert_eq!(error.to_string(), format!("s3://b/air: {expected}"));
            assert_ne!(error.kind, ErrorKind::Local);
        }
    }

    #[test]
    fn a_refusal_without_a_reason_may_mean_that_the_object_does_not_exist() {
        let words = |body: &str| {
            let error = object_store::Error::PermissionDenied {
                path: "b.tar.zst".into(),
                source: format!("Server returned non-2xx status code: 403 Forbidden: {body}")
                    .into(),
            };
            request_error("s3://b", error).to_string()
        };
        assert!(words("").ends_with("may not list the bucket (403)"));
        let denied = words("<Error><Code>AccessDenied</Code></Error>");
        assert_eq!(
            denied,
            "s3://b: the object store denies access (AccessDenied)"
        );
    }

    #[test]
    fn a_location_is_a_scheme_a_bucket_and_a_key() {
        for (text, protocol, bucket, key) in [
            ("s3://b", BucketProtocol::S3, "b", ""),
            ("s3://b.c-d/one/two", BucketProtocol::S3, "b.c-d", "one/two"),
            ("gs://b_1/one", BucketProtocol::Google, "b_1", "one"),
            ("az://box/a b", BucketProtocol::Azure, "box", "a b"),
        ] {
            let location: BucketLocation = text.parse().unwrap();
            assert_eq!(
                (location.protocol, &*location.bucket, &*location.key),
                (protocol, bucket, key)
            );
            assert_eq!(location.to_string(), text);
            assert!(BucketLocation::has_scheme(text));
        }
        assert_eq!("s3://b/one/".parse::<BucketLocation>().unwrap().key, "one");
        for bad in [
            "s3://",
            "s3:///key",
            "s3://b//c",
            "s3://b/../c",
            "s3://user@b/c",
            "https://b/c",
            "b/c",
        ] {
            assert!(
                bad.parse::<BucketLocation>().unwrap_err().contains(bad),
                "{bad}"
            );
        }
        assert!(!BucketLocation::has_scheme("./s3:/b"));
    }
}
