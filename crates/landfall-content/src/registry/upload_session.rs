//! What the steps of an upload share: the session that the registry opened, its `Location`, a
//! failed attempt, and what a run learns about uploads to one registry.

use landfall_http::HttpError;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use url::Url;

/// Whether a mount of a blob from the very repository that it goes to says that the blob is there.
/// Where it does, one request asks for the blob and opens the upload.
#[derive(Debug, Default)]
pub(super) struct SelfMounts(AtomicU8);

impl SelfMounts {
    const WORK: u8 = 1;
    const UNKNOWN_OR_NOT: u8 = 2;

    /// Whether such mounts say so, as far as this run knows.
    pub(super) fn work(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::WORK
    }

    /// Whether the caller is the one to find out.
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

    /// Remembers that they say so.
    pub(super) fn found_to_work(&self) {
        self.0.store(Self::WORK, Ordering::Relaxed);
    }
}

/// The largest body that a host takes, in bytes, as far as this run knows; 0 while it has refused
/// none.
#[derive(Debug, Default)]
pub(super) struct BodyLimit(AtomicU64);

impl BodyLimit {
    /// The limit; 0 while there is none.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lowers the limit to `bytes`. Returns whether that is news.
    pub(super) fn lower(&self, bytes: u64) -> bool {
        let known = self.get();
        let news = known == 0 || bytes < known;
        if news {
            self.0.store(bytes, Ordering::Relaxed);
        }
        news
    }
}

/// An upload that the registry has opened.
pub(super) struct UploadSession {
    /// The URL that takes its bytes.
    pub(super) target: Url,
    /// `OCI-Chunk-Min-Length` of the answer, in bytes.
    pub(super) least_chunk: u64,
}

/// An attempt that failed, with the body that was in flight.
pub(super) struct FailedUpload {
    pub(super) error: HttpError,
    /// How many bytes of the body were sent, where the connection was cut.
    pub(super) cut: Option<u64>,
    /// Length of the body.
    pub(super) length: u64,
}

impl From<HttpError> for FailedUpload {
    fn from(error: HttpError) -> FailedUpload {
        FailedUpload {
            error,
            cut: None,
            length: 0,
        }
    }
}

/// Why a `Location` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum LocationError {
    #[error("the upload's Location is no URL")]
    NoUrl(#[from] url::ParseError),
    #[error("the upload's Location leaves https")]
    LeavesHttps,
}

/// The URL that an upload continues at. A `Location` is relative, absolute, without a scheme, or
/// with the scheme or port that a registry behind a TLS proxy believes it has; on the same host the
/// connection's own count.
pub(super) fn upload_url(request: &Url, location: &str) -> Result<Url, LocationError> {
    let mut target = request.join(location)?;
    let same_host = target.host_str() == request.host_str();
    // a Location without a port leaves it out by mistake as well
    if same_host && (target.scheme() != request.scheme() || target.port().is_none()) {
        let port = request.port();
        let _ = target.set_scheme(request.scheme());
        let _ = target.set_port(port);
    }
    if request.scheme() == "https" && target.scheme() != "https" {
        return Err(LocationError::LeavesHttps);
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_in_all_their_forms() {
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
