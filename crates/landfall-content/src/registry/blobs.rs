//! Reads and looks up the blobs of a registry.

use super::session::RegistrySession;
use landfall_http::{
    ByteStream, ErrorKind, HttpError, HttpRequest, RequestPurpose, send_from_offset,
};
use landfall_model::{Descriptor, Digest};
use reqwest::header::{CONTENT_LENGTH, RANGE};
use reqwest::{Method, StatusCode};
use url::Url;

impl RegistrySession {
    /// Streams a blob from `offset` on. Returns the offset at which the stream really starts, which
    /// is 0 if the registry ignores ranges. The digest is not verified here.
    ///
    /// # Errors
    /// If the blob does not exist, or the request fails; with the message of the registry.
    pub async fn blob(
        &self,
        repository: &str,
        blob: &Descriptor,
        offset: u64,
    ) -> Result<(u64, ByteStream), HttpError> {
        let url = self.blob_url(repository, &blob.digest)?;
        let scope = self.scope(repository, false);
        let send = |range: Option<String>| {
            let request = HttpRequest::new(Method::GET, url.clone(), RequestPurpose::Registry);
            // `send_from_offset` decides whether a range is requested at all
            let request = range
                .iter()
                .fold(request, |request, range| request.header(RANGE, range));
            self.send(request, &scope)
        };
        let (start, response) =
            send_from_offset(&self.transport, &url, offset, blob.size, send).await?;
        let name = self.blob_name(repository, &blob.digest);
        let response = self
            .expect_status(
                response,
                &scope,
                || name.clone(),
                |status| matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT),
            )
            .await?;
        Ok((
            start,
            response.content_stream(blob.size - start, &name).await?,
        ))
    }

    /// Returns the name of a blob in messages.
    fn blob_name(&self, repository: &str, digest: &Digest) -> String {
        format!("blob {digest} of {}/{repository}", self.host())
    }

    fn blob_url(&self, repository: &str, digest: &Digest) -> Result<Url, HttpError> {
        self.url(repository, &format!("blobs/{digest}"))
    }

    /// Requests no more ranges from this registry, because its ranges had wrong bytes.
    pub fn distrust_ranges(&self) {
        self.transport.distrust_ranges(&self.base);
    }

    /// Whether the repository has the blob. An unclear response counts as no: the upload then shows
    /// whether the registry has it.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, HttpError> {
        let url = self.blob_url(repository, digest)?;
        let scope = self.scope(repository, true);
        let response = self
            .send(
                HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry),
                &scope,
            )
            .await?;
        // 403 and other errors mean "unknown"
        Ok(response.status == StatusCode::OK && !response.is_page())
    }

    /// Whether the repository has the blob. If the registry reports a size, it must match.
    ///
    /// # Errors
    /// If the request fails, or this account may not read the repository.
    pub async fn has_blob_of_size(
        &self,
        repository: &str,
        blob: &Descriptor,
    ) -> Result<bool, HttpError> {
        let url = self.blob_url(repository, &blob.digest)?;
        let scope = self.scope(repository, false);
        let response = self
            .send(
                HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry),
                &scope,
            )
            .await?;
        let response = self
            .expect_status(
                response,
                &scope,
                || self.blob_name(repository, &blob.digest),
                |status| matches!(status, StatusCode::OK | StatusCode::NOT_FOUND),
            )
            .await?;
        let length = response
            .header(CONTENT_LENGTH.as_str())
            .and_then(|length| length.parse().ok());
        let has_size = length.is_none_or(|length: u64| length == blob.size);
        Ok(response.status == StatusCode::OK && !response.is_page() && has_size)
    }

    /// Returns the size of a blob in bytes, or `None` if the registry lacks the blob, reports no
    /// size, or denies access.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn blob_size(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Option<u64>, HttpError> {
        let url = self.blob_url(repository, digest)?;
        let scope = self.scope(repository, false);
        let response = match self
            .send(
                HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry),
                &scope,
            )
            .await
        {
            Err(error) if error.kind == ErrorKind::Denied => return Ok(None),
            response => response?,
        };
        match response.status {
            StatusCode::OK if !response.is_page() => Ok(response
                .header(CONTENT_LENGTH.as_str())
                .and_then(|length| length.parse().ok())),
            status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                let error = self
                    .status_error(status, &scope, status.to_string(), Vec::new())
                    .await;
                Err(error
                    .at(&response.url)
                    .about(self.blob_name(repository, digest)))
            }
            _ => Ok(None),
        }
    }
}
