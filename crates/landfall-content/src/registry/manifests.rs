//! A session's manifests: get, head, put.

use super::response::{describe, leave_plain_http};
use super::session::{RegistrySession, host_of};
use bytes::Bytes;
use landfall_http::{
    BodyFailure, ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose, SIGN_IN_HINT,
    is_html, page_error,
};
use landfall_model::{Algorithm, Descriptor, Digest, Manifest, ManifestError, media_type};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, StatusCode};

/// A manifest as it came, byte for byte.
#[derive(Debug, Clone)]
pub struct FetchedManifest {
    /// The bytes.
    pub bytes: Bytes,
    /// `Content-Type` of the answer.
    pub content_type: Option<String>,
    /// The digest, computed here.
    pub digest: Digest,
}

impl RegistrySession {
    /// The manifest at a tag or digest, at most [`landfall_model::Limits::manifest_bytes`] long. A
    /// manifest by digest has that digest. Where the body breaks off, or has other bytes, landfall
    /// asks again.
    ///
    /// # Errors
    /// `NotFound` where there is none; `Invalid` where the bytes have another digest.
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

    /// The manifest that a descriptor describes: no more than its size is read.
    ///
    /// # Errors
    /// As [`RegistrySession::manifest`].
    pub async fn manifest_of(
        &self,
        repository: &str,
        descriptor: &Descriptor,
    ) -> Result<FetchedManifest, HttpError> {
        let most = self.transport.limits().manifest_bytes;
        let most = usize::try_from(descriptor.size).map_or(most, |size| size.min(most));
        self.manifest_up_to(repository, &descriptor.digest.to_string(), most)
            .await
    }

    async fn manifest_up_to(
        &self,
        repository: &str,
        reference: &str,
        most: usize,
    ) -> Result<FetchedManifest, HttpError> {
        let mut attempts = self.transport.retry_policy().body_attempts();
        loop {
            match self.manifest_once(repository, reference, most).await {
                Ok(manifest) => return Ok(manifest),
                Err(failure) => attempts.after(failure).await?,
            }
        }
    }

    async fn manifest_once(
        &self,
        repository: &str,
        reference: &str,
        most: usize,
    ) -> Result<FetchedManifest, BodyFailure<HttpError>> {
        let (manifest, named) = self.answered_manifest(repository, reference, most).await?;
        let Some(named) = named.filter(|named| *named != manifest.digest) else {
            return Ok(manifest);
        };
        // some registries name a wrong digest; whether it is that, or wrong bytes, they can tell
        let digest = manifest.digest.to_string();
        match self.answered_manifest(repository, &digest, most).await {
            Ok((same, _)) => Ok(same),
            Err(_) => Err(BodyFailure::Wrong(
                self.is_another(repository, reference, &named, &digest),
            )),
        }
    }

    /// A manifest's name in messages.
    fn manifest_name(&self, repository: &str, reference: &str) -> String {
        format!("manifest {}/{repository} {reference}", self.host())
    }

    fn is_another(
        &self,
        repository: &str,
        reference: &str,
        named: &Digest,
        found: &str,
    ) -> HttpError {
        let words = format!(
            "the answer says that it is {named}, its bytes are {found}, which the registry does not have"
        );
        HttpError::new(ErrorKind::Invalid, words).about(self.manifest_name(repository, reference))
    }

    /// One answer of at most so many bytes, and the digest that it says to have.
    async fn answered_manifest(
        &self,
        repository: &str,
        reference: &str,
        most: usize,
    ) -> Result<(FetchedManifest, Option<Digest>), BodyFailure<HttpError>> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let mut request =
            accept_manifests(HttpRequest::new(Method::GET, url, RequestPurpose::Registry));
        request.metered = true;
        let scope = self.scope(repository, false);
        let response = self.send(request, &scope).await?;
        let what = || self.manifest_name(repository, reference);
        let response = self
            .expect(response, &scope, what, |status| status == StatusCode::OK)
            .await?;
        let content_type = response.header(CONTENT_TYPE.as_str()).map(str::to_owned);
        let named = response
            .header("docker-content-digest")
            .and_then(|text| text.parse::<Digest>().ok());
        let named = named.filter(|named| named.algorithm() == Algorithm::Sha256);
        let url = response.url.clone();
        let compressed = response.compression_error(&what());
        let bytes = response.bytes(most).await.map_err(BodyFailure::reading)?;
        if is_html(&bytes) {
            return Err(page_error(&url, None, &what(), &bytes).into());
        }
        let wanted = reference.parse::<Digest>().ok();
        let digest = match &wanted {
            Some(wanted) if wanted.matches(&bytes) => {
                return Ok((
                    FetchedManifest {
                        bytes,
                        content_type,
                        digest: wanted.clone(),
                    },
                    None,
                ));
            }
            _ => Digest::sha256(&bytes),
        };
        if let Some(error) = compressed {
            return Err(error.into());
        }
        // its digest is that of its payload alone: what does not fit is no sign of wrong bytes
        if let Err(schema1 @ ManifestError::Schema1) =
            Manifest::parse(&bytes, content_type.as_deref())
        {
            return Err(HttpError::new(ErrorKind::Invalid, schema1.to_string())
                .about(what())
                .into());
        }
        match wanted {
            None => Ok((
                FetchedManifest {
                    bytes,
                    content_type,
                    digest,
                },
                named,
            )),
            Some(wanted) => {
                let looks = describe(&bytes, content_type.as_deref());
                let words = format!("the answer is not {wanted}{looks}");
                Err(BodyFailure::Wrong(
                    HttpError::new(ErrorKind::Invalid, words).at(&url),
                ))
            }
        }
    }

    /// The digest that a tag or digest stands at, or `None` where there is nothing. One HEAD; a GET
    /// where the registry does not name the digest.
    ///
    /// # Errors
    /// When the registry cannot say.
    pub async fn head_manifest(
        &self,
        repository: &str,
        reference: &str,
        push: bool,
    ) -> Result<Option<Digest>, HttpError> {
        let url = self.url(repository, &format!("manifests/{reference}"))?;
        let request = accept_manifests(HttpRequest::new(
            Method::HEAD,
            url,
            RequestPurpose::Registry,
        ));
        let scope = self.scope(repository, push);
        let response = self.send(request, &scope).await?;
        match response.status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK if response.is_page() => Err(response
                .page_error(&format!(
                    "what stands at {}/{repository}:{reference}",
                    self.host()
                ))
                .await),
            StatusCode::OK => {
                match response
                    .header("docker-content-digest")
                    .and_then(|text| text.parse().ok())
                {
                    Some(digest) => Ok(Some(digest)),
                    None => self.get_digest(repository, reference).await,
                }
            }
            StatusCode::METHOD_NOT_ALLOWED => self.get_digest(repository, reference).await,
            // some registries say 403 for what is not there; the push will tell
            StatusCode::FORBIDDEN if push => Ok(None),
            status => {
                // an answer to HEAD has no words of its own
                let advice = match status {
                    StatusCode::BAD_REQUEST if response.url.scheme() == "http" => {
                        leave_plain_http(&response.url)
                    }
                    StatusCode::TOO_MANY_REQUESTS => {
                        format!(": its rate limit is reached{SIGN_IN_HINT}, or run it again later")
                    }
                    _ => String::new(),
                };
                let words = format!("{} answered {status}{advice}", host_of(&response.url));
                let error = self.refusal(status, &scope, words, Vec::new()).await;
                Err(error
                    .at(&response.url)
                    .about(format!("{}/{repository}:{reference}", self.host())))
            }
        }
    }

    async fn get_digest(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<Option<Digest>, HttpError> {
        match self.manifest(repository, reference).await {
            Ok(manifest) => Ok(Some(manifest.digest)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a manifest at a tag or digest. Returns whether the registry lists it among its
    /// subject's referrers.
    ///
    /// # Errors
    /// The registry's refusal with its own words.
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
        request.body = RequestBody::Bytes(bytes);
        let scope = self.scope(repository, true);
        let response = self.send(request, &scope).await?;
        let what = || self.manifest_name(repository, reference);
        let response = self
            .expect(response, &scope, what, |status| status.is_success())
            .await?;
        let listed = response.headers.contains_key("oci-subject");
        response.discard().await;
        Ok(listed)
    }
}

fn accept_manifests(mut request: HttpRequest) -> HttpRequest {
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
