//! A session with one registry host: manifests, blobs, tags.

use super::auth::{Auth, Scope};
use super::credentials::Keychain;
use crate::http::{Body, ByteStream, Error, ErrorKind, Request, Response, Transport, Why, shown_url};
use crate::model::{Digest, media_type};
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RANGE};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
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

/// A session with one registry host. Connections, tokens and what was learned are shared by its users.
pub struct Session {
    /// The host as it stands in references.
    host: String,
    /// What is put before `/v2/`'s repository: a mirror's path.
    prefix: String,
    base: Url,
    origin: Option<String>,
    pub(super) transport: Transport,
    auth: Auth,
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
        let auth = Auth::new(account_host, transport.clone(), keychain, trusted);
        Session { host: host.into(), prefix, base, origin, transport, auth }
    }

    /// The host as it stands in references.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn url(&self, repository: &str, rest: &str) -> Result<Url, Error> {
        let prefix = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        self.base
            .join(&format!("/v2/{prefix}{repository}/{rest}"))
            .map_err(|_| Error::new(ErrorKind::Invalid, format!("'{repository}' cannot stand in a URL")))
    }

    /// Sends a request with whatever authentication the registry wants; a challenge in the middle of a
    /// run is answered and the request sent again, its body included.
    pub(super) async fn send(&self, mut request: Request, scope: &Scope) -> Result<Response, Error> {
        request.origin = self.origin.clone();
        let turn = self.auth.turn().await;
        let mut challenges = 0;
        loop {
            let header = self.auth.header(scope).await?;
            let signed = match &header {
                Some(header) => request.clone().header(AUTHORIZATION, header),
                None => request.clone(),
            };
            let response = self.transport.send(&signed).await?;
            if response.status != StatusCode::UNAUTHORIZED {
                self.auth.accepted();
                drop(turn);
                return Ok(response);
            }
            if response.url.origin() != request.url.origin() {
                let token = self.auth.foreign(&response.headers, &response.url, scope).await?;
                let Some(token) = token else { return Ok(response) };
                let mut foreign = Request { url: response.url.clone(), why: Why::Redirect, ..request };
                foreign = foreign.header(AUTHORIZATION, &token);
                response.discard().await;
                return self.transport.send(&foreign).await;
            }
            challenges += 1;
            if challenges > 2 {
                return Err(self.auth.denied(scope, response.status.as_u16()).await);
            }
            let (headers, url) = (response.headers.clone(), response.url.clone());
            response.discard().await;
            self.auth.challenged(&headers, &url, scope, header.as_deref()).await?;
        }
    }

    fn pull(repository: &str) -> Scope {
        Scope { repository: repository.into(), push: false, from: None }
    }

    /// The manifest at a tag or digest, at most [`crate::model::Limits::manifest_bytes`] long. Asked for
    /// by digest it has that digest.
    ///
    /// # Errors
    /// `NotFound` where there is none; `Invalid` where the bytes have another digest.
    pub async fn manifest(&self, repository: &str, reference: &str) -> Result<RawManifest, Error> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let request = accept_manifests(Request::new(Method::GET, url, Why::Registry));
        let scope = Session::pull(repository);
        let response = self.send(request, &scope).await?;
        let what = || format!("manifest {}/{repository} {reference}", self.host);
        let response = self.expect(response, &scope, what, |status| status == StatusCode::OK).await?;
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let shown = shown_url(&response.url);
        let bytes = response.bytes(self.transport.limits().manifest_bytes).await?;
        let digest = match reference.parse::<Digest>() {
            Err(_) => Digest::sha256(&bytes),
            Ok(wanted) if wanted.matches(&bytes) => wanted,
            Ok(wanted) => {
                let looks = describe(&bytes, content_type.as_deref());
                let message = format!("{shown}: the answer is not {wanted}{looks}");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        };
        Ok(RawManifest { bytes, content_type, digest })
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
        let scope = Scope { push, ..Session::pull(repository) };
        let response = self.send(request, &scope).await?;
        match response.status {
            StatusCode::NOT_FOUND => Ok(None),
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

    /// A blob from `offset` on, and the offset at which the answer really starts: 0 where the registry
    /// ignores ranges. The bytes are not checked here.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for an answer to a range that is none.
    pub async fn blob(
        &self,
        repository: &str,
        digest: &Digest,
        offset: u64,
    ) -> Result<(u64, ByteStream), Error> {
        let url = self.url(repository, &format!("blobs/{digest}"))?;
        let mut request = Request::new(Method::GET, url, Why::Registry);
        if offset > 0 {
            request = request.header(RANGE, &format!("bytes={offset}-"));
        }
        let scope = Session::pull(repository);
        let mut response = self.send(request.clone(), &scope).await?;
        if offset > 0 && matches!(response.status.as_u16(), 400 | 416) {
            // what refuses a range may still give the whole
            request.headers.remove(RANGE);
            response = self.send(request, &scope).await?;
        }
        let what = || format!("blob {digest} of {}/{repository}", self.host);
        let good = |status| matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT);
        let response = self.expect(response, &scope, what, good).await?;
        crate::http::range_start(&response, offset).map(|start| (start, response.stream()))
    }

    /// Whether the repository has the blob, as far as the registry says.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, Error> {
        let url = self.url(repository, &format!("blobs/{digest}"))?;
        let scope = Scope { push: true, ..Session::pull(repository) };
        let response = self.send(Request::new(Method::HEAD, url, Why::Registry), &scope).await?;
        // 403 and other refusals mean "unknown": the upload will tell
        Ok(response.status == StatusCode::OK)
    }

    /// Puts a manifest at a tag or digest.
    ///
    /// # Errors
    /// The registry's refusal with its own words.
    pub async fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<(), Error> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let mut request = Request::new(Method::PUT, url, Why::Registry).header(CONTENT_TYPE, media_type);
        request.body = Body::Bytes(bytes);
        let scope = Scope { push: true, ..Session::pull(repository) };
        let response = self.send(request, &scope).await?;
        let what = || format!("manifest {}/{repository} {reference}", self.host);
        self.expect(response, &scope, what, |status| status.is_success()).await?.discard().await;
        Ok(())
    }

    /// The answer if it is a good one; else an error with the registry's own words.
    pub(super) async fn expect(
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
        Err(self.classify(status, scope, message).await)
    }

    async fn classify(&self, status: StatusCode, scope: &Scope, message: String) -> Error {
        match status.as_u16() {
            404 => Error::new(ErrorKind::NotFound, message),
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

/// What an unexpected body says: the errors of the distribution API, an HTML page's title, or nothing.
fn describe(body: &[u8], content_type: Option<&str>) -> String {
    let text = String::from_utf8_lossy(body);
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
    let html =
        content_type.is_some_and(|kind| kind.starts_with("text/html")) || text.trim_start().starts_with("<!");
    if html {
        let lower = text.to_ascii_lowercase();
        let title = lower.find("<title>").and_then(|start| {
            let end = lower[start..].find("</title>")? + start;
            text.get(start + 7..end)
        });
        return format!(" (an HTML page, titled '{}': from a proxy?)", title.unwrap_or("").trim());
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
