//! A session's blobs: their bytes, and whether the registry has them.

use super::session::RegistrySession;
use landfall_http::{
    ByteStream, ErrorKind, HttpError, HttpRequest, RequestPurpose, send_from_offset,
};
use landfall_model::{Descriptor, Digest};
use reqwest::header::{CONTENT_LENGTH, RANGE};
use reqwest::{Method, StatusCode};
use url::Url;

impl RegistrySession {
    /// A blob from `offset` on, and the offset at which the answer really starts: 0 where the
    /// registry ignores ranges. The bytes are not checked here.
    ///
    /// # Errors
    /// `NotFound`, and other refusals with the registry's own words.
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
            let request = range
                .iter()
                .fold(request, |request, range| request.header(RANGE, range));
            self.send(request, &scope)
        };
        let (start, response) =
            send_from_offset(&self.transport, &url, offset, blob.size, send).await?;
        let what = || format!("blob {} of {}/{repository}", blob.digest, self.host());
        let good = |status| matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT);
        let response = self.answered(response, &scope, what, good).await?;
        Ok((
            start,
            response.content_stream(blob.size - start, &what()).await?,
        ))
    }

    fn blob_url(&self, repository: &str, digest: &Digest) -> Result<Url, HttpError> {
        self.url(repository, &format!("blobs/{digest}"))
    }

    /// Remembers that ranges of this registry's blobs gave wrong bytes: landfall asks for none
    /// again.
    pub fn distrust_ranges(&self) {
        self.transport.distrust_ranges(&self.base);
    }

    /// Whether the repository has the blob, as far as the registry says.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, HttpError> {
        let url = self.blob_url(repository, digest)?;
        let scope = self.scope(repository, true);
        let response = self
            .send(
                HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry),
                &scope,
            )
            .await?;
        // 403 and other refusals mean "unknown": the upload will tell
        Ok(response.status == StatusCode::OK && !response.is_page())
    }

    /// Whether the repository has the blob in its size; a registry that names no size is believed.
    ///
    /// # Errors
    /// When it cannot be asked, or does not let this account read there.
    pub async fn holds_blob(&self, repository: &str, blob: &Descriptor) -> Result<bool, HttpError> {
        let what = || format!("blob {} of {}/{repository}", blob.digest, self.host());
        let url = self.blob_url(repository, &blob.digest)?;
        let scope = self.scope(repository, false);
        let response = self
            .send(
                HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry),
                &scope,
            )
            .await?;
        let good = |status| matches!(status, StatusCode::OK | StatusCode::NOT_FOUND);
        let response = self.answered(response, &scope, what, good).await?;
        let length = response
            .header(CONTENT_LENGTH.as_str())
            .and_then(|length| length.parse().ok());
        let in_its_size = length.is_none_or(|length: u64| length == blob.size);
        Ok(response.status == StatusCode::OK && !response.is_page() && in_its_size)
    }

    /// Size in bytes of a blob of the repository. `None` where the registry lacks it, names no
    /// size, or does not let this account read there.
    ///
    /// # Errors
    /// When it cannot be asked.
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
                    .refusal(status, &scope, status.to_string(), Vec::new())
                    .await;
                Err(error
                    .at(&response.url)
                    .about(format!("blob {digest} of {}/{repository}", self.host())))
            }
            _ => Ok(None),
        }
    }
}
