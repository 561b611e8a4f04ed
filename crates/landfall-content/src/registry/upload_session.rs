//! The state of an upload: the session that the registry opened, its `Location`, failed attempts,
//! and properties of the registry that a run detects.

use landfall_http::HttpError;
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
pub(super) struct BodyLimit(AtomicU64);

impl BodyLimit {
    /// Returns the limit, or 0 if there is none.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lowers the limit to `bytes`, unless it is that low already. Returns whether it was lowered.
    pub(super) fn lower(&self, bytes: u64) -> bool {
        let lower = |limit| (limit == 0 || bytes < limit).then_some(bytes);
        self.0
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
}

impl From<HttpError> for FailedUpload {
    fn from(error: HttpError) -> FailedUpload {
        FailedUpload {
            error,
            cut: None,
            length: 0,
            min_chunk: 0,
        }
    }
}

/// Why the `Location` of an upload is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LocationError {
    #[error("the Location of the upload is not a URL")]
    InvalidUrl(#[from] url::ParseError),
    #[error("the Location of the upload leads from https to http")]
    LeavesHttps,
}

/// Returns the URL at which an upload continues. A `Location` may be relative, absolute or without
/// a scheme. A registry behind a TLS proxy may send a wrong scheme or leave out the port; if the
/// host is the same, the scheme and port of the request are used instead.
pub(super) fn upload_url(request: &Url, location: &str) -> Result<Url, LocationError> {
    let mut target = request.join(location)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved_in_all_forms() {
        let request = Url::parse("https://r.test:5000/v2/a/blobs/uploads/").unwrap();
        let target = |location: &str| upload_url(&request, location).map(|url| url.to_string());
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
    }
}
