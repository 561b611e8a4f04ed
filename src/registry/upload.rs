//! Uploads of blobs: begun, mounted from another repository, and given back.

use super::auth::Scope;
use super::session::Session;
use crate::http::{Error, ErrorKind, Request, Why};
use crate::model::{Algorithm, Digest};
use reqwest::header::LOCATION;
use reqwest::{Method, StatusCode};
use std::sync::atomic::{AtomicU8, Ordering};
use url::Url;

/// Whether a mount of a blob from the very repository that it goes to tells that it is there. Where it does,
/// the question and the begin of the upload are one request.
#[derive(Debug, Default)]
pub(super) struct OwnMounts(AtomicU8);

impl OwnMounts {
    const TELL: u8 = 1;
    const TELL_NOTHING: u8 = 2;

    pub(super) fn tell(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::TELL
    }

    /// Whether the caller is the one to find out.
    fn begin_to_learn(&self) -> bool {
        self.0.compare_exchange(0, Self::TELL_NOTHING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// An upload that the registry has opened.
pub(super) struct OpenUpload {
    /// Where it goes on.
    pub(super) target: Url,
    /// `OCI-Chunk-Min-Length` of the answer, in bytes.
    pub(super) least_chunk: u64,
}

impl Session {
    /// Begins an upload; `None` where the registry mounted the blob from the repository `mount`.
    pub(super) async fn begin(
        &self,
        repository: &str,
        digest: Option<&Digest>,
        mount: Option<&str>,
    ) -> Result<Option<OpenUpload>, Error> {
        let what = || match digest {
            Some(digest) => format!("blob {digest} to {}/{repository}", self.host()),
            None => format!("an upload to {}/{repository}", self.host()),
        };
        let foreign = mount.filter(|from| *from != repository);
        let scope = Scope { from: foreign.map(|from| self.full(from)), ..self.scope(repository, true) };
        let mut begin = self.url(repository, "blobs/uploads/")?;
        match (digest, mount) {
            (Some(digest), Some(from)) => {
                let words = [("mount", digest.to_string()), ("from", self.full(from))];
                begin.query_pairs_mut().extend_pairs(words);
            }
            (Some(digest), None) if digest.algorithm() != Algorithm::Sha256 => {
                begin.query_pairs_mut().append_pair("digest-algorithm", digest.algorithm().as_str());
            }
            _ => {}
        }
        let response = self.send(Request::new(Method::POST, begin.clone(), Why::Registry), &scope).await?;
        let good = |status| matches!(status, StatusCode::ACCEPTED | StatusCode::CREATED);
        let response = self.expect(response, &scope, what, good).await?;
        if response.status == StatusCode::CREATED && mount.is_some() {
            response.discard().await;
            return Ok(None);
        }
        let invalid = |why: &str| Error::new(ErrorKind::Invalid, format!("{}: {why}", what()));
        let location = response
            .header(LOCATION.as_str())
            .ok_or_else(|| invalid("the registry opened an upload without a Location"))?;
        let target = upload_url(&response.url, location).map_err(|why| invalid(&why))?;
        let least = response.header("oci-chunk-min-length").and_then(|length| length.trim().parse().ok());
        response.discard().await;
        Ok(Some(OpenUpload { target, least_chunk: least.unwrap_or(0) }))
    }

    /// Whether the registry links a blob that `from` has into `repository`.
    ///
    /// # Errors
    /// The registry's refusal with its own words.
    pub async fn mount(&self, repository: &str, digest: &Digest, from: &str) -> Result<bool, Error> {
        let opened = self.begin(repository, Some(digest), Some(from)).await?;
        let mounted = opened.is_none();
        if let Some(opened) = opened {
            self.cancel(repository, opened).await;
        }
        Ok(mounted)
    }

    /// Whether something may be pushed to `repository`: an upload is begun, and cancelled.
    ///
    /// # Errors
    /// The registry's refusal with its own words.
    pub async fn may_push(&self, repository: &str) -> Result<(), Error> {
        if let Some(opened) = self.begin(repository, None, None).await? {
            self.cancel(repository, opened).await;
        }
        Ok(())
    }

    /// Whether the registry has taken requests without a sign-in so far.
    pub fn is_open(&self) -> bool {
        self.auth.asks_nobody()
    }

    /// Gives an upload back, if the registry can.
    pub(super) async fn cancel(&self, repository: &str, opened: OpenUpload) {
        let cancel = Request { retried: false, ..Request::new(Method::DELETE, opened.target, Why::Registry) };
        if let Ok(response) = self.send(cancel, &self.scope(repository, true)).await {
            response.discard().await;
        }
    }

    /// Asks for a mount of a blob that was just sent, once in a run.
    pub(super) async fn learn_own_mounts(&self, repository: &str, digest: &Digest) {
        if !self.own_mounts.begin_to_learn() {
            return;
        }
        match self.begin(repository, Some(digest), Some(repository)).await {
            Ok(None) => self.own_mounts.0.store(OwnMounts::TELL, Ordering::Relaxed),
            Ok(Some(opened)) => self.cancel(repository, opened).await,
            Err(_) => {}
        }
    }
}

/// Whether the registry has no room for more: a quota of the project, or its disk.
pub fn is_quota(kind: ErrorKind, message: &str) -> bool {
    let refused = match kind {
        ErrorKind::Status(507) => return true,
        ErrorKind::Status(status) => (400..500).contains(&status),
        kind => kind == ErrorKind::Denied,
    };
    refused && message.to_ascii_lowercase().contains("quota")
}

/// 401 and 403 for lack of rights at the other repository, 404 for a repository that is not known, and
/// whatever else a registry says that knows no mounts.
pub(super) fn refuses_mount(error: &Error) -> bool {
    match error.kind {
        ErrorKind::Denied | ErrorKind::NotFound => true,
        ErrorKind::Status(status) => (400..500).contains(&status) && !error.is_transient(),
        _ => false,
    }
}

/// Whether another upload of the same content may succeed.
pub(super) fn begins_again(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Status(416))
        || error.codes.iter().any(|code| code.starts_with("BLOB_UPLOAD_"))
        || error.is_transient()
}

/// Where an upload goes on: relative, absolute, without a scheme, or with the scheme or port that a
/// registry behind a TLS proxy believes it has; on the same host the connection's own are kept.
pub(super) fn upload_url(request: &Url, location: &str) -> Result<Url, String> {
    let mut target = request.join(location).map_err(|_| "the upload's Location is no URL".to_owned())?;
    let same_host = target.host_str() == request.host_str();
    // a Location without a port leaves it out by mistake as well
    if same_host && (target.scheme() != request.scheme() || target.port().is_none()) {
        let port = request.port();
        let _ = target.set_scheme(request.scheme());
        let _ = target.set_port(port);
    }
    if request.scheme() == "https" && target.scheme() != "https" {
        return Err("the upload's Location leaves https".into());
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
        assert_eq!(target("http://r.test/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("https://r.test/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("//r.test:5000/v2/u/1"), Ok("https://r.test:5000/v2/u/1".into()));
        assert_eq!(target("https://other.test/u"), Ok("https://other.test/u".into()));
        assert!(target("http://other.test/u").is_err());
    }

    #[test]
    fn a_quota_is_told_from_other_refusals() {
        let quota = "Quota exceeded when processing the request of adding 1 MiB of storage resource";
        assert!(is_quota(ErrorKind::Denied, quota) && is_quota(ErrorKind::Status(412), quota));
        assert!(is_quota(ErrorKind::Status(507), ""));
        assert!(!is_quota(ErrorKind::Denied, "may not write") && !is_quota(ErrorKind::Network, quota));
    }
}
