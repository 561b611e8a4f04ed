//! Opens and cancels uploads, and mounts blobs from other repositories (distribution-spec, "Pushing
//! blobs").

use super::challenge::TokenScope;
use super::session::RegistrySession;
use landfall_http::{ErrorKind, HttpError, HttpRequest, RequestPurpose, host_port};
use landfall_model::{Algorithm, Digest, Failure};
use reqwest::{Method, StatusCode};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;
use url::Url;

impl RegistrySession {
    /// Opens an upload. Returns `None` if the registry mounted the blob from the repository
    /// `mount`.
    pub(super) async fn open_upload(
        &self,
        repository: &str,
        digest: Option<&Digest>,
        mount: Option<&str>,
    ) -> Result<Option<UploadSession>, HttpError> {
        let name = match digest {
            Some(digest) => format!("blob {digest} to {}/{repository}", self.host()),
            None => format!("an upload to {}/{repository}", self.host()),
        };
        let foreign = mount.filter(|from| *from != repository);
        let scope = TokenScope {
            from: foreign.map(|from| self.full(from)),
            ..self.scope(repository, true)
        };
        let mut begin = self.url(repository, "blobs/uploads/")?;
        if let Some(digest) = digest {
            let from = mount.map(|from| self.full(from));
            add_upload_parameters(&mut begin, digest, from);
        }
        let response = self
            .send(
                HttpRequest::new(Method::POST, begin.clone(), RequestPurpose::Registry),
                &scope,
            )
            .await?;
        // 202 by the specification; a page of a proxy has 200 too, but no Location
        let has_location = response.location().is_some();
        let is_open = |status| {
            matches!(status, StatusCode::ACCEPTED | StatusCode::CREATED)
                || (status == StatusCode::OK && has_location)
        };
        let response = self
            .expect(response, &scope, || name.clone(), is_open)
            .await?;
        // 202 to a mount is not an error: the registry has opened an upload instead
        if response.status == StatusCode::CREATED && mount.is_some() {
            response.discard().await;
            return Ok(None);
        }
        let location = response.location().ok_or_else(|| {
            let words = "the registry opened an upload without a Location";
            HttpError::new(ErrorKind::Invalid, words).about(&*name)
        })?;
        let target = self.upload_url(&response.url, &location, &name)?;
        let min_chunk: Option<u64> = response
            .header("oci-chunk-min-length")
            .and_then(|length| length.trim().parse().ok());
        response.discard().await;
        Ok(Some(UploadSession {
            target,
            min_chunk: min_chunk.unwrap_or(0),
        }))
    }

    /// Returns the URL of a `Location` at which the upload `name` continues.
    pub(super) fn upload_url(
        &self,
        request: &Url,
        location: &str,
        name: &str,
    ) -> Result<Url, HttpError> {
        let at_own_host = self.misdirected_uploads.get().is_some();
        let target = upload_url(request, location, at_own_host).map_err(|error| {
            HttpError::new(ErrorKind::Invalid, error.to_string())
                .about(name)
                .caused_by(error)
        })?;
        let named = request.join(location).ok();
        let named = named.filter(|named| named.host_str() != target.host_str() && !at_own_host);
        if let Some(named) = named {
            self.note_misdirected_uploads(host_port(&named));
        }
        Ok(target)
    }

    /// Records that the `Location` of an upload names a host that cannot be used: from now on,
    /// uploads continue at the host of the registry.
    pub(super) fn note_misdirected_uploads(&self, named: String) {
        let is_new = self.misdirected_uploads.set(named).is_ok();
        if is_new && let Some(cause) = self.misdirection() {
            let note = format!("{0}: uploads continue at {0}: {cause}", self.host());
            self.transport.note_once(&note);
        }
    }

    /// Why uploads continue at the host of the registry instead of the host that it names.
    pub(super) fn misdirection(&self) -> Option<String> {
        self.misdirected_uploads.get().map(|named| {
            format!(
                "the registry names {named} in the Location of uploads, which cannot be used; its \
                 external URL, or the X-Forwarded headers of the proxy before it, are misconfigured"
            )
        })
    }

    /// Mounts a blob of the repository `from` in `repository`. Returns whether the registry did so.
    ///
    /// # Errors
    /// If the registry refuses, with its message.
    pub async fn mount(
        &self,
        repository: &str,
        digest: &Digest,
        from: &str,
    ) -> Result<bool, HttpError> {
        let opened = self
            .open_upload(repository, Some(digest), Some(from))
            .await?;
        let mounted = opened.is_none();
        if let Some(opened) = opened {
            // the registry opened an upload instead, which would stay open until it expires
            self.cancel(repository, opened).await;
        }
        Ok(mounted)
    }

    /// Checks that this account may push to `repository`, by opening and cancelling an upload.
    ///
    /// # Errors
    /// If the registry refuses, with its message.
    pub async fn check_push(&self, repository: &str) -> Result<(), HttpError> {
        if let Some(opened) = self.open_upload(repository, None, None).await? {
            self.cancel(repository, opened).await;
        }
        Ok(())
    }

    /// Whether the registry has not required authentication so far.
    pub fn is_anonymous(&self) -> bool {
        self.auth.is_anonymous()
    }

    /// Cancels an upload, if the registry supports that and the account may delete. Otherwise the
    /// upload stays open until it expires.
    pub(super) async fn cancel(&self, repository: &str, opened: UploadSession) {
        let cancel = HttpRequest {
            retried: false,
            ..HttpRequest::new(Method::DELETE, opened.target, RequestPurpose::Registry)
        };
        if let Ok(response) = self.send(cancel, &self.delete_scope(repository)).await {
            response.discard().await;
        }
    }

    /// A mount of a blob from its own repository checks for the blob and, if the registry lacks it,
    /// opens its upload: one request instead of two. This tries such a mount once for each session,
    /// to find out whether the registry supports it.
    pub(super) async fn learn_self_mounts(&self, repository: &str, digest: &Digest) {
        if !self.self_mounts.begin_to_learn() {
            return;
        }
        match self
            .open_upload(repository, Some(digest), Some(repository))
            .await
        {
            Ok(None) => self.self_mounts.record_success(),
            Ok(Some(opened)) => self.cancel(repository, opened).await,
            Err(_) => {}
        }
    }

    /// Looks up each further blob before it is uploaded. A registry that answers any mount with
    /// success reports blobs as missing that it seemed to have.
    pub fn distrust_self_mounts(&self) {
        self.self_mounts.distrust();
    }
}

/// Adds the parameters of a request that opens the upload of `digest` or, with `from`, mounts the
/// blob from that repository.
fn add_upload_parameters(url: &mut Url, digest: &Digest, from: Option<String>) {
    if let Some(from) = from {
        let words = [("mount", digest.to_string()), ("from", from)];
        url.query_pairs_mut().extend_pairs(words);
    }
    // the registry hashes while it receives, with SHA-256 unless the request names another
    // algorithm; a mount needs the parameter too, because the registry may open an upload instead
    if digest.algorithm() != Algorithm::Sha256 {
        url.query_pairs_mut()
            .append_pair("digest-algorithm", digest.algorithm().as_str());
    }
}

/// Whether the registry refuses a mount. Registries answer 401 or 403 if the account may not read
/// the source repository, 404 if the repository is unknown, and another 4xx if they do not support
/// mounts. Transient errors do not count.
pub(super) fn refuses_mount(error: &HttpError) -> bool {
    match error.kind {
        ErrorKind::Denied | ErrorKind::NotFound => true,
        ErrorKind::Status(status) => (400..500).contains(&status) && !error.is_transient(),
        _ => false,
    }
}

/// Whether a new upload may succeed after this error.
pub(super) fn may_restart_upload(error: &HttpError) -> bool {
    matches!(error.kind, ErrorKind::Status(416))
        || error
            .codes
            .iter()
            .any(|error| error.code.starts_with("BLOB_UPLOAD_"))
        || error.is_transient()
}

// The state of an upload: the session that the registry opened, its `Location`, failed attempts,
// and properties of the registry that a run detects.

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
/// or twice ends a body at the same position or after the same time.
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
#[derive(Clone)]
pub(super) struct UploadSession {
    /// The URL to send the bytes to.
    pub(super) target: Url,
    /// `OCI-Chunk-Min-Length` of the response, in bytes.
    pub(super) min_chunk: u64,
}

/// Two cuts count as the same position if they are at most this many bytes apart, because buffers
/// may hold as much when a connection is cut.
const SAME_POSITION: u64 = 16 << 20;
/// Two requests count as ended after the same time if the times differ by at most this.
const SAME_TIME: Duration = Duration::from_secs(2);
/// The shortest time that is taken for a limit: proxies have limits from 15 seconds on.
const MIN_TIME: Duration = Duration::from_secs(10);

/// How a request with a body ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UploadEnd {
    /// How many bytes of the body were sent, if the connection was cut.
    pub(super) cut: Option<u64>,
    /// How long the request took, if the connection was cut, or a proxy did not wait any longer.
    pub(super) took: Option<Duration>,
}

impl UploadEnd {
    /// Returns what the host did, as the beginning of a message, if this attempt and the one before
    /// seem to have hit the same limit.
    pub(super) fn same_limit(self, before: UploadEnd) -> Option<&'static str> {
        let positions = self.cut.zip(before.cut);
        if positions.is_some_and(|(now, before)| now.abs_diff(before) <= SAME_POSITION) {
            return Some("cut the connection twice at the same position of");
        }
        let (now, before) = self.took.zip(before.took)?;
        (now >= MIN_TIME && now.abs_diff(before) <= SAME_TIME)
            .then_some("twice ended the request after the same time, with")
    }
}

/// A failed request of an upload, with the number of body bytes that were sent.
pub(super) struct FailedUpload {
    pub(super) error: HttpError,
    pub(super) end: UploadEnd,
    /// The length of the body in bytes.
    pub(super) length: u64,
    /// The shortest chunk that the registry accepts, in bytes.
    pub(super) min_chunk: u64,
    /// Whether the request was the PUT that completes the upload.
    pub(super) is_put: bool,
    /// The other host that the registry named, if it gave no response.
    pub(super) silent_host: Option<String>,
}

impl From<HttpError> for FailedUpload {
    fn from(error: HttpError) -> FailedUpload {
        FailedUpload {
            error,
            end: UploadEnd::default(),
            length: 0,
            min_chunk: 0,
            is_put: false,
            silent_host: None,
        }
    }
}

/// Returns the URL at which an upload continues. A `Location` may be relative, absolute or without
/// a scheme. A registry behind a TLS proxy may send a wrong scheme or leave out the port; if the
/// host is the same, the scheme and port of the request are used instead.
///
/// A registry whose external URL is misconfigured names an internal host. If the path is that of an
/// upload of the distribution API, the host of the request has it too. It is used if the named host
/// must not be used, or with `at_own_host`.
pub(super) fn upload_url(request: &Url, location: &str, at_own_host: bool) -> Result<Url, Failure> {
    let target = request.join(location);
    let mut target =
        target.map_err(|_| Failure::failed("the Location of the upload is not a URL"))?;
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
        return Err(Failure::failed(
            "the Location of the upload leads from https to http; the external URL of the \
             registry, or the X-Forwarded headers of the proxy before it, are misconfigured",
        ));
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
    fn an_upload_names_an_algorithm_other_than_sha_256() {
        let query = |digest: &str, from: Option<&str>| {
            let mut url = Url::parse("https://reg.test/v2/a/blobs/uploads/").unwrap();
            let digest = digest.parse().unwrap();
            add_upload_parameters(&mut url, &digest, from.map(str::to_owned));
            url.query().map(str::to_owned)
        };
        let sha256 = format!("sha256:{}", "1".repeat(64));
        let sha512 = format!("sha512:{}", "1".repeat(128));
        assert_eq!(query(&sha256, None), None);
        let mount = |digest: &str| format!("mount={}&from=b%2Fc", digest.replace(':', "%3A"));
        assert_eq!(query(&sha256, Some("b/c")), Some(mount(&sha256)));
        let algorithm = "digest-algorithm=sha512";
        assert_eq!(query(&sha512, None).as_deref(), Some(algorithm));
        // the registry may open an upload instead of mounting the blob
        let both = format!("{}&{algorithm}", mount(&sha512));
        assert_eq!(query(&sha512, Some("b/c")), Some(both));
    }

    #[test]
    fn attempts_that_end_at_the_same_position_or_time_have_hit_a_limit() {
        let end = |cut: Option<u64>, seconds: u64| UploadEnd {
            cut: cut.map(|mib| mib << 20),
            took: Some(Duration::from_secs(seconds)),
        };
        for (now, before, expected) in [
            (end(Some(100), 3), end(Some(110), 90), Some("position")),
            (end(Some(300), 15), end(Some(200), 16), Some("time")),
            (end(None, 60), end(Some(200), 60), Some("time")),
            (end(Some(300), 15), end(Some(200), 40), None),
            // a host that fails at once has no limit for the time
            (end(None, 3), end(None, 3), None),
            (end(None, 60), UploadEnd::default(), None),
        ] {
            let limit = now.same_limit(before);
            assert_eq!(limit.is_some(), expected.is_some(), "{limit:?}");
            let words = limit.unwrap_or_default();
            assert!(words.contains(expected.unwrap_or_default()), "{words}");
        }
    }

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
