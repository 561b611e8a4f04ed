//! A session with one registry host: manifests, blobs, tags.

use super::auth::{Auth, Scope};
use super::body::BodyLimit;
use super::credentials::Keychain;
use super::upload::{OwnMounts, is_quota};
use crate::http::{
    Body, Error, ErrorKind, Request, Response, Transport, Why, came_instead, looks_like_page, shown_url,
    title,
};
use crate::model::{Algorithm, Digest, media_type};
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Method, StatusCode};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use url::Url;

/// A manifest as it came, byte for byte.
#[derive(Debug, Clone)]
pub struct RawManifest {
    /// The bytes.
    pub bytes: Bytes,
    /// `Content-Type` of the answer.
    pub content_type: Option<String>,
    /// The digest, computed here.
    pub digest: Digest,
}

/// Why an answer that is read as a whole did not come.
pub(super) enum Wrong {
    /// The answer, which the transport has asked for often enough.
    Answer(Error),
    /// The body of a good answer.
    Body(Error),
}

/// A session with one registry host. Connections, tokens and what was learned are shared by its users.
pub struct Session {
    /// The host as it stands in references.
    host: String,
    /// What is put before `/v2/`'s repository: a mirror's path.
    prefix: String,
    pub(super) base: Url,
    origin: Option<String>,
    pub(super) transport: Transport,
    pub(super) auth: Auth,
    pub(super) body_limit: BodyLimit,
    pub(super) own_mounts: OwnMounts,
    /// Repositories of which it is known that their referrers are not listed.
    without_referrers: Mutex<HashSet<String>>,
}

impl Session {
    /// A session with `host` at `base`. `prefix` is put after `/v2/`; `origin` is what the ledger shows
    /// in `for`; `trusted` says that credentials may be sent.
    pub(super) fn new(
        host: &str,
        base: Url,
        prefix: String,
        origin: Option<String>,
        transport: Transport,
        keychain: Arc<Keychain>,
        trusted: bool,
    ) -> Session {
        let account_host = match &origin {
            Some(_) => host_of(&base),
            None => host.to_owned(),
        };
        let auth = Auth::new(account_host, base.clone(), transport.clone(), keychain, trusted);
        Session {
            host: host.into(),
            prefix,
            base,
            origin,
            transport,
            auth,
            body_limit: BodyLimit::default(),
            own_mounts: OwnMounts::default(),
            without_referrers: Mutex::default(),
        }
    }

    /// The host as it stands in references.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether a mirror is asked in place of the host. A cache lists no more than it holds.
    pub fn is_mirror(&self) -> bool {
        self.origin.is_some()
    }

    pub(super) fn lists_no_referrers(&self, repository: &str) -> bool {
        self.without_referrers.lock().is_ok_and(|known| known.contains(repository))
    }

    pub(super) fn listed_no_referrers(&self, repository: &str) {
        if let Ok(mut known) = self.without_referrers.lock() {
            known.insert(repository.to_owned());
        }
    }

    /// The repository as the registry knows it: with the mirror's path before it.
    pub(super) fn full(&self, repository: &str) -> String {
        if self.prefix.is_empty() { repository.into() } else { format!("{}/{repository}", self.prefix) }
    }

    pub(super) fn url(&self, repository: &str, rest: &str) -> Result<Url, Error> {
        self.base
            .join(&format!("/v2/{}/{rest}", self.full(repository)))
            .map_err(|_| Error::new(ErrorKind::Invalid, format!("'{repository}' cannot stand in a URL")))
    }

    /// Sends a request with whatever authentication the registry wants; a challenge in the middle of a
    /// run is answered and the request sent again, its body included.
    pub(super) async fn send(&self, mut request: Request, scope: &Scope) -> Result<Response, Error> {
        request.origin = self.origin.clone();
        if request.url.origin() != self.base.origin() {
            // an upload that goes on at another host: no credentials for it, and its challenge is not ours
            return self.transport.send(&request).await;
        }
        let turn = self.auth.turn().await;
        let (mut challenges, mut refusals) = (0, 0);
        loop {
            let signed = self.auth.header(scope).await?;
            let sent = match &signed {
                Some(signed) => request.clone().header(AUTHORIZATION, &signed.header),
                None => request.clone(),
            };
            let response = self.transport.send(&sent).await?;
            if response.status != StatusCode::UNAUTHORIZED {
                if let Some(signed) = &signed {
                    signed.taken.store(true, Ordering::Relaxed);
                }
                self.auth.accepted();
                drop(turn);
                return Ok(response);
            }
            // the answer is read to its end before anything else is asked: it holds a slot of its host
            let (headers, url) = (response.headers.clone(), response.url.clone());
            response.discard().await;
            if url.origin() != request.url.origin() {
                let token = self.auth.foreign(&headers, &url, scope).await?;
                let foreign = Request { url, why: Why::Redirect, ..request };
                return self.transport.send(&foreign.header(AUTHORIZATION, &token)).await;
            }
            // a token that was good before has run out, and other workers may use up the next one too
            let fresh = signed.as_ref().is_some_and(|signed| !signed.taken.load(Ordering::Relaxed));
            challenges += 1;
            refusals += u32::from(fresh);
            if refusals > 1 || challenges > self.transport.limits().waits {
                return Err(self.auth.denied(scope, StatusCode::UNAUTHORIZED.as_u16()).await);
            }
            if fresh {
                // by a clock that is behind, a new token is not good yet
                self.transport.pause(1).await;
            }
            self.auth.challenged(&headers, &url, scope, signed.as_ref().map(|s| s.header.as_str())).await?;
        }
    }

    /// Tries again what broke off in its body.
    pub(super) async fn again<T>(&self, work: impl AsyncFn() -> Result<T, Wrong>) -> Result<T, Error> {
        for attempt in 1.. {
            match work().await {
                Ok(found) => return Ok(found),
                Err(Wrong::Body(error))
                    if error.is_transient() && attempt < self.transport.limits().attempts =>
                {
                    self.transport.pause(attempt).await;
                }
                Err(Wrong::Body(error) | Wrong::Answer(error)) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// The scope of a request that reads, or reads and writes.
    pub(super) fn scope(&self, repository: &str, push: bool) -> Scope {
        Scope { repository: self.full(repository), push, from: None }
    }

    /// The manifest at a tag or digest, at most [`crate::model::Limits::manifest_bytes`] long. Asked for
    /// by digest it has that digest. A body that breaks off, or comes with other bytes, is asked for again.
    ///
    /// # Errors
    /// `NotFound` where there is none; `Invalid` where the bytes have another digest.
    pub async fn manifest(&self, repository: &str, reference: &str) -> Result<RawManifest, Error> {
        let attempts = self.transport.limits().attempts;
        let (mut failed, mut wrong) = (0, 0);
        loop {
            let error = match self.manifest_once(repository, reference).await {
                Ok((manifest, None)) => return Ok(manifest),
                Ok((manifest, Some(named))) if named == manifest.digest => return Ok(manifest),
                // some registries name a wrong digest; whether it is that, or wrong bytes, they can tell
                Ok((manifest, Some(named))) => {
                    let digest = manifest.digest.to_string();
                    match self.manifest_once(repository, &digest).await {
                        Ok((same, _)) => return Ok(same),
                        Err(_) => self.is_another(repository, reference, &named, &digest),
                    }
                }
                Err(Wrong::Answer(error)) => return Err(error),
                Err(Wrong::Body(error)) => error,
            };
            // wrong bytes once may be a bad link or cache; twice is what the registry has
            failed += 1;
            wrong += u32::from(error.kind == ErrorKind::Invalid);
            if failed >= attempts || wrong > 1 {
                return Err(error);
            }
            self.transport.pause(failed).await;
        }
    }

    fn is_another(&self, repository: &str, reference: &str, named: &Digest, found: &str) -> Error {
        let message = format!(
            "manifest {}/{repository} {reference}: the answer says that it is {named}, its bytes are {found}, which \
             the registry does not have",
            self.host
        );
        Error::new(ErrorKind::Invalid, message)
    }

    /// One answer, and the digest that it says to have.
    async fn manifest_once(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<(RawManifest, Option<Digest>), Wrong> {
        let url = self.url(repository, &format!("manifests/{reference}")).map_err(Wrong::Answer)?;
        let mut request = accept_manifests(Request::new(Method::GET, url, Why::Registry));
        request.metered = true;
        let scope = self.scope(repository, false);
        let response = self.send(request, &scope).await.map_err(Wrong::Answer)?;
        let what = || format!("manifest {}/{repository} {reference}", self.host);
        let response = self.expect(response, &scope, what, |status| status == StatusCode::OK).await;
        let response = response.map_err(Wrong::Answer)?;
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let named = response.header("docker-content-digest").and_then(|text| text.parse::<Digest>().ok());
        let named = named.filter(|named| named.algorithm() == Algorithm::Sha256);
        let shown = shown_url(&response.url);
        let compressed = response.compressed(&what());
        let bytes = response.bytes(self.transport.limits().manifest_bytes).await.map_err(Wrong::Body)?;
        if looks_like_page(&bytes) {
            return Err(Wrong::Answer(came_instead(&shown, None, &what(), &bytes)));
        }
        let digest = match reference.parse::<Digest>() {
            Ok(wanted) if wanted.matches(&bytes) => {
                return Ok((RawManifest { bytes, content_type, digest: wanted }, None));
            }
            wanted => wanted,
        };
        match (compressed, digest) {
            (Some(error), _) => Err(Wrong::Answer(error)),
            (None, Ok(wanted)) => {
                let looks = describe(&bytes, content_type.as_deref());
                let message = format!("{shown}: the answer is not {wanted}{looks}");
                Err(Wrong::Body(Error::new(ErrorKind::Invalid, message)))
            }
            (None, Err(_)) => {
                let digest = Digest::sha256(&bytes);
                Ok((RawManifest { bytes, content_type, digest }, named))
            }
        }
    }

    /// The digest that a tag or digest stands at, or `None` where there is nothing. One HEAD; a GET where
    /// the registry does not name the digest.
    ///
    /// # Errors
    /// When the registry cannot say.
    pub async fn head_manifest(
        &self,
        repository: &str,
        reference: &str,
        push: bool,
    ) -> Result<Option<Digest>, Error> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let request = accept_manifests(Request::new(Method::HEAD, url, Why::Registry));
        let scope = self.scope(repository, push);
        let response = self.send(request, &scope).await?;
        match response.status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK if response.is_page() => {
                Err(response.page(&format!("what stands at {}/{repository}:{reference}", self.host)).await)
            }
            StatusCode::OK => {
                match response.header("docker-content-digest").and_then(|text| text.parse().ok()) {
                    Some(digest) => Ok(Some(digest)),
                    None => self.get_digest(repository, reference).await,
                }
            }
            StatusCode::METHOD_NOT_ALLOWED => self.get_digest(repository, reference).await,
            // some registries say 403 for what is not there; the push will tell
            StatusCode::FORBIDDEN if push => Ok(None),
            status => {
                let message = format!("{}/{repository}:{reference}: {}", self.host, status);
                Err(self.classify(status, &scope, message).await)
            }
        }
    }

    async fn get_digest(&self, repository: &str, reference: &str) -> Result<Option<Digest>, Error> {
        match self.manifest(repository, reference).await {
            Ok(manifest) => Ok(Some(manifest.digest)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a manifest at a tag or digest. Says whether the registry keeps it in the list of its subject's
    /// referrers.
    ///
    /// # Errors
    /// The registry's refusal with its own words.
    pub async fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<bool, Error> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let mut request = Request::new(Method::PUT, url, Why::Registry).header(CONTENT_TYPE, media_type);
        request.body = Body::Bytes(bytes);
        let scope = self.scope(repository, true);
        let response = self.send(request, &scope).await?;
        let what = || format!("manifest {}/{repository} {reference}", self.host);
        let response = self.expect(response, &scope, what, |status| status.is_success()).await?;
        let listed = response.headers.contains_key("oci-subject");
        response.discard().await;
        Ok(listed)
    }

    /// The answer if it is a good one and no HTML page; else an error with the registry's own words.
    pub(super) async fn expect(
        &self,
        response: Response,
        scope: &Scope,
        what: impl Fn() -> String,
        good: impl FnOnce(StatusCode) -> bool,
    ) -> Result<Response, Error> {
        let response = self.answered(response, scope, &what, good).await?;
        if response.is_page() { Err(response.page(&what()).await) } else { Ok(response) }
    }

    pub(super) async fn answered(
        &self,
        response: Response,
        scope: &Scope,
        what: impl FnOnce() -> String,
        good: impl FnOnce(StatusCode) -> bool,
    ) -> Result<Response, Error> {
        let status = response.status;
        if good(status) {
            return Ok(response);
        }
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let host = host_of(&response.url);
        let body = response.bytes(64 << 10).await.unwrap_or_default();
        let words = describe(&body, content_type.as_deref());
        let message = format!("{}: {host} answered {status}{words}", what());
        Err(Error { codes: codes(&body), ..self.classify(status, scope, message).await })
    }

    pub(super) async fn classify(&self, status: StatusCode, scope: &Scope, message: String) -> Error {
        match status.as_u16() {
            404 => Error::new(ErrorKind::NotFound, message),
            403 if is_quota(ErrorKind::Denied, &message) => Error::new(ErrorKind::Denied, message),
            401 | 403 => {
                let why = self.auth.denied(scope, status.as_u16()).await;
                Error::new(ErrorKind::Denied, format!("{message}; {why}"))
            }
            code => Error::new(ErrorKind::Status(code), message),
        }
    }
}

fn host_of(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or("?"))
}

fn accept_manifests(mut request: Request) -> Request {
    let kinds = [
        media_type::OCI_INDEX,
        media_type::DOCKER_LIST,
        media_type::OCI_MANIFEST,
        media_type::DOCKER_MANIFEST,
        media_type::DOCKER_SCHEMA1_SIGNED,
        media_type::DOCKER_SCHEMA1,
        "*/*",
    ];
    request = request.header(ACCEPT, &kinds.join(", "));
    request
}

/// The codes of the distribution API's errors in a body (distribution-spec, "Error Codes").
fn codes(body: &[u8]) -> Vec<String> {
    let document: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let errors = document.as_ref().and_then(|document| document.get("errors")?.as_array());
    let code = |error: &serde_json::Value| Some(error.get("code")?.as_str()?.to_owned());
    errors.into_iter().flatten().filter_map(code).collect()
}

/// What an unexpected body says: the errors of the distribution API, an HTML page's title, or nothing.
fn describe(body: &[u8], content_type: Option<&str>) -> String {
    if let Ok(document) = serde_json::from_slice::<serde_json::Value>(body)
        && let Some(errors) = document.get("errors").and_then(serde_json::Value::as_array)
    {
        let word = |error: &serde_json::Value, key: &str| {
            error.get(key).and_then(|v| v.as_str()).unwrap_or("").to_owned()
        };
        let words: Vec<String> = errors
            .iter()
            .map(|error| format!("{} {}", word(error, "code"), word(error, "message")).trim().to_owned())
            .filter(|words| !words.is_empty())
            .collect();
        if !words.is_empty() {
            return format!(": {}", words.join("; "));
        }
    }
    if content_type.is_some_and(|kind| kind.starts_with("text/html")) || looks_like_page(body) {
        let titled = title(body).map(|title| format!(", titled '{title}'")).unwrap_or_default();
        return format!(" (an HTML page{titled}: from a proxy?)");
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_described_in_their_own_words() {
        let body = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{}}]}"#;
        assert_eq!(describe(body, None), ": MANIFEST_UNKNOWN manifest unknown");
        let page = b"<!DOCTYPE html><html><head><TITLE> Blocked </TITLE>";
        assert!(describe(page, Some("text/html")).contains("titled 'Blocked'"));
        assert_eq!(describe(b"", None), "");
    }
}
