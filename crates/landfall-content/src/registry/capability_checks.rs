//! Checks what a registry allows: a sign-in, an upload of a given size, an index with missing
//! children. Uploaded content is removed again, if the registry allows that.

use super::error_codes::SparseRefusal;
use super::session::RegistrySession;
use super::upload_session::UploadSession;
use bytes::Bytes;
use landfall_http::{ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose};
use landfall_model::{Digest, media_type};
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Method, StatusCode};

/// Whether a registry accepts an index with missing children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseIndexSupport {
    /// The registry refused the index.
    Refused,
    /// The index was accepted, and deleted again.
    Accepted,
    /// The index was accepted, but could not be deleted, so it remains in the registry without a
    /// tag. Contains the size of the index in bytes.
    AcceptedAndKept(u64),
}

impl RegistrySession {
    /// Signs in with the account for `repository`, which may be empty, in a single attempt.
    ///
    /// # Errors
    /// If the registry or its token service denies the account.
    pub async fn sign_in(&self, repository: &str) -> Result<(), HttpError> {
        let scope = self.scope(repository, false);
        let url = self
            .base
            .join("/v2/")
            .map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))?;
        let request = HttpRequest {
            // each attempt with a wrong password counts towards a lock of the account
            retried: false,
            ..HttpRequest::new(Method::GET, url, RequestPurpose::Registry)
        };
        let response = self.send(request, &scope).await?;
        self.expect(
            response,
            &scope,
            || format!("the sign-in to {}", self.host()),
            |status| status.is_success(),
        )
        .await?
        .discard()
        .await;
        Ok(())
    }

    /// Returns the two chunk sizes for uploads to a host that refuses larger bodies, in descending
    /// order.
    pub fn chunk_sizes(&self) -> [u64; 2] {
        self.transport.limits().chunks
    }

    /// Whether the registry accepts a request body of this size in an upload. The upload is
    /// cancelled afterwards.
    ///
    /// # Errors
    /// If the request fails for another reason than the size.
    pub async fn accepts_body(&self, repository: &str, bytes: usize) -> Result<bool, HttpError> {
        let Some(opened) = self.open_upload(repository, None, None).await? else {
            return Ok(true);
        };
        let scope = self.scope(repository, true);
        let mut request = HttpRequest::new(
            Method::PATCH,
            opened.target.clone(),
            RequestPurpose::Registry,
        )
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_RANGE, &format!("0-{}", bytes.saturating_sub(1)));
        // one attempt: a body that is too large stays too large
        request.retried = false;
        request.body = RequestBody::Bytes(Bytes::from(vec![0; bytes]));
        let response = match self.send(request, &scope).await {
            Ok(response) => response,
            Err(error) => {
                self.cancel(repository, opened).await;
                return Err(error);
            }
        };
        let status = response.status;
        let location = response.location();
        // an upload is cancelled at the URL in its latest Location
        let continued = location
            .and_then(|location| self.upload_url(&opened.target, &location, repository).ok());
        let target = continued.unwrap_or_else(|| opened.target.clone());
        let passed = match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                response.discard().await;
                Ok(false)
            }
            _ => self
                .expect(
                    response,
                    &scope,
                    || format!("a body of {bytes} bytes to {}/{repository}", self.host()),
                    |status| status.is_success(),
                )
                .await
                .map(|_| true),
        };
        self.cancel(repository, UploadSession { target, ..opened })
            .await;
        passed
    }

    /// Whether the registry accepts an index whose child it lacks. It refuses such indexes if it
    /// names the child as the cause, or accepts the same index without the child. An accepted index
    /// is deleted again, if the registry allows that.
    ///
    /// # Errors
    /// If the request fails, for another reason than the missing child or for an unknown reason.
    pub async fn accepts_sparse_index(
        &self,
        repository: &str,
    ) -> Result<SparseIndexSupport, HttpError> {
        let child = Digest::sha256(b"landfall doctor: no registry has this manifest");
        let index = |children: serde_json::Value| {
            Bytes::from(
                serde_json::json!({
                    "schemaVersion": 2,
                    "mediaType": media_type::OCI_INDEX,
                    "manifests": children,
                })
                .to_string(),
            )
        };
        let sparse = index(serde_json::json!([{
            "mediaType": media_type::OCI_MANIFEST,
            "digest": child,
            "size": 2,
            "platform": {"os": "linux", "architecture": "amd64"},
        }]));
        let size = sparse.len() as u64;
        let put = async |bytes: Bytes| {
            let digest = Digest::sha256(&bytes);
            self.put_manifest(
                repository,
                &digest.to_string(),
                media_type::OCI_INDEX,
                bytes,
            )
            .await?;
            // whether it could be deleted again
            Ok::<_, HttpError>(self.delete_manifest(repository, &digest).await.is_ok())
        };
        let error = match put(sparse).await {
            Ok(true) => return Ok(SparseIndexSupport::Accepted),
            Ok(false) => return Ok(SparseIndexSupport::AcceptedAndKept(size)),
            Err(error) => error,
        };
        let is_about_the_child = match SparseRefusal::of(&error, &[child]) {
            SparseRefusal::Stated => true,
            SparseRefusal::Possible => put(index(serde_json::json!([]))).await.is_ok(),
            SparseRefusal::Unrelated => false,
        };
        if is_about_the_child {
            Ok(SparseIndexSupport::Refused)
        } else {
            Err(error)
        }
    }
}
