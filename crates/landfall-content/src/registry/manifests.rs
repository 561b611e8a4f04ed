//! Gets, looks up and puts the manifests of a registry.

use super::response::{is_page_for_head, plain_http_advice};
use super::session::RegistrySession;
use bytes::Bytes;
use landfall_http::{
    BodyFailure, ErrorKind, HttpError, HttpRequest, HttpResponse, RequestBody, RequestPurpose,
    SIGN_IN_HINT, api_errors, describe, host_of, is_html, page_error,
};
use landfall_model::{Algorithm, Descriptor, Digest, Manifest, ManifestError, locked, media_type};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, StatusCode};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A manifest as the registry sent it, byte for byte.
#[derive(Debug, Clone)]
pub struct FetchedManifest {
    /// The bytes of the manifest.
    pub bytes: Bytes,
    /// The `Content-Type` of the response.
    pub content_type: Option<String>,
    /// The digest, computed from the bytes.
    pub digest: Digest,
}

impl RegistrySession {
    /// Fetches the manifest of a tag or digest, of at most
    /// [`landfall_model::Limits::manifest_bytes`]. If it is requested by digest, its digest is
    /// verified. The request is repeated if the body is incomplete or has the wrong digest.
    ///
    /// # Errors
    /// Of kind `NotFound` if there is no such manifest, `Invalid` if its digest is wrong.
    pub async fn manifest(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<FetchedManifest, HttpError> {
        self.manifest_up_to(
            repository,
            reference,
            self.transport.limits().manifest_bytes,
        )
        .await
    }

    /// Fetches the manifest of a descriptor, and reads at most the size in the descriptor.
    ///
    /// # Errors
    /// Like [`RegistrySession::manifest`].
    pub async fn manifest_of(
        &self,
        repository: &str,
        descriptor: &Descriptor,
    ) -> Result<FetchedManifest, HttpError> {
        let limit = self.transport.limits().manifest_bytes;
        let limit = usize::try_from(descriptor.size).map_or(limit, |size| size.min(limit));
        self.manifest_up_to(repository, &descriptor.digest.to_string(), limit)
            .await
    }

    async fn manifest_up_to(
        &self,
        repository: &str,
        reference: &str,
        limit: usize,
    ) -> Result<FetchedManifest, HttpError> {
        let policy = self.transport.retry_policy();
        policy
            .read_body(|| self.manifest_once(repository, reference, limit))
            .await
    }

    async fn manifest_once(
        &self,
        repository: &str,
        reference: &str,
        limit: usize,
    ) -> Result<FetchedManifest, BodyFailure<HttpError>> {
        let (manifest, named) = self.request_manifest(repository, reference, limit).await?;
        let Some(named) = named.filter(|named| *named != manifest.digest) else {
            return Ok(manifest);
        };
        // either the digest in the header or the bytes are wrong; if the registry has a manifest
        // with the digest of the bytes, the header is wrong
        let digest = manifest.digest.to_string();
        match self.request_manifest(repository, &digest, limit).await {
            Ok((same, _)) => Ok(same),
            // some registries answer 403 for a missing manifest
            Err(BodyFailure::Final(error)) if error.may_be_missing() => Err(BodyFailure::Wrong(
                self.wrong_digest_header(repository, reference, &named, &digest),
            )),
            Err(other) => Err(other),
        }
    }

    /// Returns the name of a manifest in messages.
    fn manifest_name(&self, repository: &str, reference: &str) -> String {
        format!("manifest {}/{repository} {reference}", self.host())
    }

    fn wrong_digest_header(
        &self,
        repository: &str,
        reference: &str,
        named: &Digest,
        found: &str,
    ) -> HttpError {
        let words = format!(
            "the response names the digest {named}, but its bytes have the digest {found}, and the \
             registry returns no manifest for that digest"
        );
        HttpError::new(ErrorKind::Invalid, words).about(self.manifest_name(repository, reference))
    }

    /// Requests a manifest of at most `limit` bytes. If it is requested by tag, also returns the
    /// SHA-256 digest in the header of the response.
    async fn request_manifest(
        &self,
        repository: &str,
        reference: &str,
        limit: usize,
    ) -> Result<(FetchedManifest, Option<Digest>), BodyFailure<HttpError>> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let mut request =
            accept_manifests(HttpRequest::new(Method::GET, url, RequestPurpose::Registry));
        // Docker Hub counts these requests against its rate limit
        request.metered = true;
        let scope = self.scope(repository, false);
        let response = self.send(request, &scope).await?;
        let name = self.manifest_name(repository, reference);
        let response = self
            .expect(
                response,
                &scope,
                || name.clone(),
                |status| status == StatusCode::OK,
            )
            .await?;
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let named = content_digest(&response);
        // only the SHA-256 of the bytes is computed, so a SHA-512 digest cannot be compared
        let named = named.filter(|named| named.algorithm() == Algorithm::Sha256);
        let url = response.url.clone();
        let compressed = response.compression_error(&name);
        let wanted = reference.parse::<Digest>().ok();
        let bytes = match &wanted {
            Some(wanted) => response.bytes_of(limit, wanted).await,
            None => response.bytes(limit).await,
        };
        let bytes = bytes.map_err(BodyFailure::reading)?;
        // proxies and sign-in pages answer with status 200 too
        if is_html(&bytes) {
            return Err(page_error(&url, None, &name, &bytes).into());
        }
        let right = wanted.clone().filter(|wanted| wanted.matches(&bytes));
        let manifest = FetchedManifest {
            digest: right.unwrap_or_else(|| Digest::sha256(&bytes)),
            bytes,
            content_type,
        };
        if wanted.as_ref() == Some(&manifest.digest) {
            return Ok((manifest, None));
        }
        let kind = manifest.content_type.as_deref();
        match (Manifest::parse(&manifest.bytes, kind), compressed) {
            // the digest of a schema 1 manifest covers its payload, but not its signatures, so a
            // mismatch does not mean wrong bytes
            (Err(schema1 @ ManifestError::Schema1), _) => {
                return Err(HttpError::new(ErrorKind::Invalid, schema1.to_string())
                    .about(name)
                    .into());
            }
            // in a coding that landfall does not know
            (Err(_), Some(error)) => return Err(error.into()),
            _ => {}
        }
        match wanted {
            None => Ok((manifest, named)),
            Some(wanted) => {
                let errors = api_errors(&manifest.bytes);
                let body = describe(&errors, &manifest.bytes, kind, None);
                let words = format!("the response is not {wanted}{body}");
                Err(BodyFailure::Wrong(
                    HttpError::new(ErrorKind::Invalid, words).at(&url),
                ))
            }
        }
    }

    /// Resolves a tag or digest to the digest of its manifest, or `None` if the registry does not
    /// have it. Sends a HEAD request, and then a GET request if the response does not report the
    /// digest or says nothing about the manifest: some registries do not implement HEAD, fail at it
    /// for some manifests, or redirect it to a store whose signed URL is valid for GET only. With
    /// `push`, a 403 response also gives `None`.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn head_manifest(
        &self,
        repository: &str,
        reference: &str,
        push: bool,
    ) -> Result<Option<Digest>, HttpError> {
        // proven by an earlier manifest of this repository, whose GET succeeded
        if locked(&self.refused_heads).contains(repository) {
            return self.get_digest(repository, reference, push).await;
        }
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let request = accept_manifests(HttpRequest::new(
            Method::HEAD,
            url,
            RequestPurpose::Registry,
        ));
        let scope = self.scope(repository, push);
        let response = self.send(request, &scope).await?;
        let is_elsewhere = response.url.origin() != self.base.origin();
        match response.status {
            StatusCode::NOT_FOUND if !is_elsewhere && self.manifest_heads.confirm() => {
                response.discard().await;
                let found = self.get_digest(repository, reference, push).await?;
                if found.is_some() {
                    self.manifest_heads.record_false_404();
                }
                Ok(found)
            }
            StatusCode::NOT_FOUND if !is_elsewhere => Ok(None),
            StatusCode::OK if is_page_for_head(&response) => Err(response
                .page_error(&format!("{}/{repository}:{reference}", self.host()))
                .await),
            StatusCode::OK => {
                match content_digest(&response) {
                    Some(digest) => {
                        self.manifest_heads.record_success();
                        Ok(Some(digest))
                    }
                    // some registries omit the header for HEAD
                    None => self.get_digest(repository, reference, false).await,
                }
            }
            status if says_nothing_for_head(status, is_elsewhere) => {
                response.discard().await;
                let found = self.get_digest(repository, reference, push).await?;
                if found.is_some() {
                    locked(&self.refused_heads).insert(repository.to_owned());
                }
                Ok(found)
            }
            // some registries answer 403 for a missing manifest; the push shows whether access is
            // denied
            StatusCode::FORBIDDEN if push => Ok(None),
            status => {
                // a response to HEAD has no body with a message
                let advice = match status {
                    StatusCode::BAD_REQUEST if response.url.scheme() == "http" => {
                        plain_http_advice(&response.url)
                    }
                    StatusCode::TOO_MANY_REQUESTS => {
                        format!(": its rate limit is reached{SIGN_IN_HINT}, or run it again later")
                    }
                    _ => String::new(),
                };
                let words = format!("{} answered {status}{advice}", host_of(&response.url));
                let error = self.status_error(status, &scope, words, Vec::new()).await;
                Err(error
                    .at(&response.url)
                    .about(format!("{}/{repository}:{reference}", self.host())))
            }
        }
    }

    /// Whether GET found a manifest for which the registry had answered 404 to HEAD. The first 404s
    /// of [`RegistrySession::head_manifest`] may then be wrong: only a few of them are confirmed.
    pub fn has_false_404s(&self) -> bool {
        self.manifest_heads.fail.load(Ordering::Relaxed)
    }

    async fn get_digest(
        &self,
        repository: &str,
        reference: &str,
        push: bool,
    ) -> Result<Option<Digest>, HttpError> {
        match self.manifest(repository, reference).await {
            Ok(manifest) => Ok(Some(manifest.digest)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) if push && error.status == Some(403) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a manifest at a tag or digest. Returns whether the registry has processed the `subject`
    /// of the manifest and so lists the manifest as a referrer (distribution-spec, `OCI-Subject`).
    ///
    /// # Errors
    /// If the registry refuses, with its message, or has changed the manifest.
    pub async fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<bool, HttpError> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let mut request = HttpRequest::new(Method::PUT, url, RequestPurpose::Registry)
            .header(CONTENT_TYPE, media_type);
        let digest = Digest::sha256(&bytes);
        request.body = RequestBody::Bytes(bytes);
        let scope = self.scope(repository, true);
        let response = self.send(request, &scope).await?;
        let response = self
            .expect(
                response,
                &scope,
                || self.manifest_name(repository, reference),
                |status| status.is_success(),
            )
            .await?;
        let listed = response.headers.contains_key("oci-subject");
        let other = content_digest(&response)
            .filter(|named| named.algorithm() == Algorithm::Sha256 && *named != digest);
        response.discard().await;
        // either the digest in the header is wrong, or the registry has changed the manifest
        if let Some(other) = other
            && let Ok(None) = self
                .head_manifest(repository, &digest.to_string(), false)
                .await
        {
            let words = format!(
                "it was stored as {other}, not as {digest}: the registry, or a proxy before it, \
                 changes manifests"
            );
            let error = HttpError::new(ErrorKind::Invalid, words);
            return Err(error.about(self.manifest_name(repository, reference)));
        }
        Ok(listed)
    }
}

/// The digest in the header of a response for a manifest. Some servers put it in quotes.
pub(super) fn content_digest(response: &HttpResponse) -> Option<Digest> {
    let values = response.headers.get_all("docker-content-digest").iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    let is_around = |c: char| c.is_whitespace() || c == '"';
    texts.find_map(|text| text.trim_matches(is_around).parse().ok())
}

/// Whether a 404 to a HEAD of a manifest means that there is no such manifest. Some servers answer
/// 404 although GET succeeds.
#[derive(Debug, Default)]
pub(super) struct ManifestHeads {
    /// Whether a HEAD found a manifest, so that the registry implements it.
    work: AtomicBool,
    /// Whether a GET found a manifest that a HEAD did not find. From then on, GET confirms each
    /// 404.
    fail: AtomicBool,
    /// The number of 404s that were confirmed before either is known.
    confirmed: AtomicU32,
}

impl ManifestHeads {
    /// The number of 404s to confirm: at an empty registry, each costs one more request.
    const CONFIRMED: u32 = 3;

    /// Whether a GET has to confirm a 404.
    fn confirm(&self) -> bool {
        self.fail.load(Ordering::Relaxed)
            || !self.work.load(Ordering::Relaxed)
                && self.confirmed.fetch_add(1, Ordering::Relaxed) < Self::CONFIRMED
    }

    fn record_success(&self) {
        self.work.store(true, Ordering::Relaxed);
    }

    fn record_false_404(&self) {
        self.fail.store(true, Ordering::Relaxed);
    }
}

/// Whether the status of a response to HEAD says nothing about the content, so that GET decides:
/// the registry does not implement HEAD or fails at it, or redirects it to another host
/// (`is_elsewhere`) whose signed URL is valid for GET only.
pub(super) fn says_nothing_for_head(status: StatusCode, is_elsewhere: bool) -> bool {
    matches!(status.as_u16(), 400 | 405 | 406 | 500 | 501)
        || (is_elsewhere && status.is_client_error())
}

fn accept_manifests(request: HttpRequest) -> HttpRequest {
    let kinds = [
        media_type::OCI_INDEX,
        media_type::DOCKER_LIST,
        media_type::OCI_MANIFEST,
        media_type::DOCKER_MANIFEST,
        media_type::OCI_ARTIFACT,
        media_type::ORAS_ARTIFACT,
        media_type::DOCKER_SCHEMA1_SIGNED,
        media_type::DOCKER_SCHEMA1,
        // without it, a registry may answer 404 for a manifest of a type that is not listed
        "*/*",
    ];
    request.header(ACCEPT, &kinds.join(", "))
}

// Deletion of manifests (distribution-spec, "Deleting Manifests").

impl RegistrySession {
    /// Deletes a manifest with all of its tags. Returns whether it existed.
    ///
    /// # Errors
    /// If the registry refuses; [`is_deletion_disabled`] says whether it refuses all deletions.
    pub async fn delete_manifest(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<bool, HttpError> {
        let url = self.url(repository, &format!("manifests/{digest}"))?;
        let request = HttpRequest::new(Method::DELETE, url, RequestPurpose::Registry);
        let scope = self.delete_scope(repository);
        let response = self.send(request, &scope).await?;
        let response = self
            .expect(
                response,
                &scope,
                || format!("deletion of {}/{repository}@{digest}", self.host()),
                |status: StatusCode| status.is_success() || status == StatusCode::NOT_FOUND,
            )
            .await?;
        let was_there = response.status.is_success();
        response.discard().await;
        Ok(was_there)
    }
}

/// Whether the error means that the registry does not delete any manifest. docker-registry deletes
/// manifests only if its configuration enables deletion.
pub fn is_deletion_disabled(error: &HttpError) -> bool {
    matches!(error.kind, ErrorKind::Status(405 | 501)) || error.has_code("UNSUPPORTED")
}
