//! The state of an upload: the session that the registry opened, its `Location`, failed attempts,
//! and properties of the registry that a run detects.

use landfall_http::HttpError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use url::Url;

/// Whether the registry accepts mounts of a repository's blobs into the same repository. If so, one
/// request both checks whether a blob is present and, if it is not, opens its upload.
#[derive(Debug, Default)]
pub(super) struct SelfMounts(AtomicU8);

impl SelfMounts {
    const WORK: u8 = 1;
    // set as soon as the first caller tries, so that no other caller tries
    const UNKNOWN_OR_NOT: u8 = 2;

    /// Whether these mounts are known to succeed.
    pub(super) fn are_known_to_work(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::WORK
    }

    /// Returns `true` only for the first caller, which then has to try such a mount.
    pub(super) fn begin_to_learn(&self) -> bool {
        self.0
            .compare_exchange(
                0,
                Self::UNKNOWN_OR_NOT,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Records that these mounts succeed.
    pub(super) fn record_success(&self) {
        self.0.store(Self::WORK, Ordering::Relaxed);
    }

    /// Records that these mounts cannot be relied on.
    pub(super) fn distrust(&self) {
        self.0.store(Self::UNKNOWN_OR_NOT, Ordering::Relaxed);
    }
}

/// The largest body that is sent to a host, in bytes; 0 until the host refuses a body for its size,
/// or twice cuts off a body at the same position.
#[derive(Debug, Default)]
pub(super) struct BodyLimit {
    bytes: AtomicU64,
    /// Why bodies were limited first.
    cause: OnceLock<String>,
}

impl BodyLimit {
    /// Returns the limit, or 0 if there is none.
    pub(super) fn get(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns why bodies are limited, if they are.
    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Lowers the limit to `bytes`, unless it is that low already. Returns whether it was lowered.
    pub(super) fn lower(&self, bytes: u64, cause: &str) -> bool {
        let _ = self.cause.set(cause.to_owned());
        let lower = |limit| (limit == 0 || bytes < limit).then_some(bytes);
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower)
            .is_ok()
    }
}

/// An upload that the registry has opened.
pub(super) struct UploadSession {
    /// The URL to send the bytes to.
    pub(super) target: Url,
    /// `OCI-Chunk-Min-Length` of the response, in bytes.
    pub(super) min_chunk: u64,
}

/// A failed request of an upload, with the number of body bytes that were sent.
pub(super) struct FailedUpload {
    pub(super) error: HttpError,
    /// How many bytes of the body were sent, if the connection was cut.
    pub(super) cut: Option<u64>,
    /// The length of the body in bytes.
    pub(super) length: u64,
    /// The shortest chunk that the registry accepts, in bytes.
    pub(super) min_chunk: u64,
    /// The other host that the registry named, if it gave no response.
    pub(super) silent_host: Option<String>,
}

impl From<HttpError> for FailedUpload {
    fn from(error: HttpError) -> FailedUpload {
        FailedUpload {
            error,
            cut: None,
            length: 0,
            min_chunk: 0,
            silent_host: None,
        }
    }
}

/// Why the `Location` of an upload is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LocationError {
    #[error("the Location of the upload is not a URL")]
    InvalidUrl(#[from] url::ParseError),
    #[error(
        "the Location of the upload leads from https to http; the external URL of the registry, or \
         the X-Forwarded headers of the proxy before it, are misconfigured"
    )]
    LeavesHttps,
}

/// Returns the URL at which an upload continues. A `Location` may be relative, absolute or without
/// a scheme. A registry behind a TLS proxy may send a wrong scheme or leave out the port; if the
/// host is the same, the scheme and port of the request are used instead.
///
/// A registry whose external URL is misconfigured names an internal host. If the path is that of an
/// upload of the distribution API, the host of the request has it too. It is used if the named host
/// must not be used, or with `at_own_host`.
pub(super) fn upload_url(
    request: &Url,
    location: &str,
    at_own_host: bool,
) -> Result<Url, LocationError> {
    let mut target = request.join(location)?;
    let leaves_https = request.scheme() == "https" && target.scheme() != "https";
    let is_misdirected = at_own_host && target.origin() != request.origin()
        || leaves_https && target.host_str() != request.host_str();
    if is_misdirected && is_api_upload(&target) {
        let mut own = request.clone();
        own.set_path(target.path());
        own.set_query(target.query());
        return Ok(own);
    }
    let same_host = target.host_str() == request.host_str();
    // some registries leave out the port
    if same_host && (target.scheme() != request.scheme() || target.port().is_none()) {
        let port = request.port();
        let _ = target.set_scheme(request.scheme());
        let _ = target.set_port(port);
    }
    // the body and a signature in the URL would be readable on the network
    if request.scheme() == "https" && target.scheme() != "https" {
        return Err(LocationError::LeavesHttps);
    }
    Ok(target)
}

/// Whether the path of a URL is that of an upload of the distribution API.
pub(super) fn is_api_upload(url: &Url) -> bool {
    url.path().starts_with("/v2/") && url.path().contains("/blobs/uploads/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved_in_all_forms() {
        let request = Url::parse("https://r.test:5000/v2/a/blobs/uploads/").unwrap();
        let target =
            |location: &str| upload_url(&request, location, false).map(|url| url.to_string());
        assert_eq!(
            target("/v2/a/blobs/uploads/1?_state=x"),
            Ok("https://r.test:5000/v2/a/blobs/uploads/1?_state=x".into())
        );
        assert_eq!(
            target("http://r.test/v2/u/1"),
            Ok("https://r.test:5000/v2/u/1".into())
        );
        assert_eq!(
            target("https://r.test/v2/u/1"),
            Ok("https://r.test:5000/v2/u/1".into())
        );
        assert_eq!(
            target("//r.test:5000/v2/u/1"),
            Ok("https://r.test:5000/v2/u/1".into())
        );
        assert_eq!(
            target("https://other.test/u"),
            Ok("https://other.test/u".into())
        );
        assert!(target("http://other.test/u").is_err());
        // the host of the request has the path of the API, too
        let internal = "http://internal:8080/v2/a/blobs/uploads/1?_state=x";
        let own = "https://r.test:5000/v2/a/blobs/uploads/1?_state=x";
        assert_eq!(target(internal), Ok(own.into()));
        let elsewhere = "https://other.test/v2/a/blobs/uploads/1";
        assert_eq!(target(elsewhere), Ok(elsewhere.into()));
        let url = upload_url(&request, elsewhere, true).unwrap();
        assert_eq!(url.as_str(), "https://r.test:5000/v2/a/blobs/uploads/1");
        let url = upload_url(&request, "https://r.test:1/v2/a/blobs/uploads/1", true).unwrap();
        assert_eq!(url.as_str(), "https://r.test:5000/v2/a/blobs/uploads/1");
        let url = upload_url(&request, "https://other.test/u", true).unwrap();
        assert_eq!(url.as_str(), "https://other.test/u");
    }
}
