//! Downloads files and blobs that are read while an item is resolved.

use super::resolve_error::ResolveError;
use super::state::Resolver;
use bytes::Bytes;
use landfall_content::upstream::{
    Upstreams, expect_success, expect_whole_file, get_current_file, is_page, post_json,
};
use landfall_content::{BlobRead, EntryPart, LocalSink, PartOrigin, Transfer};
use landfall_http::{
    Activity, BodyFailure, ErrorKind, HttpError, UnlimitedSlot, is_html, page_error,
};
use landfall_model::report::{SilentProgress, TransferSide};
use landfall_model::{Descriptor, Digest, ImageRef};
use std::sync::Arc;

/// Whether the URL is that of a compressed file.
fn is_archive(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let endings = [".gz", ".tgz", ".zst", ".xz", ".bz2"];
    endings.iter().any(|ending| path.ends_with(ending))
}

impl Resolver {
    /// Downloads a file of at most `max_bytes` bytes. `expected` is the file's digest, if known. A
    /// file that was compressed in transit is decoded. Some servers send `Content-Encoding` for a
    /// `.gz` file that is stored compressed: such a file is kept as it was sent if it has the
    /// digest or, without one, if its name says that it is compressed.
    ///
    /// # Errors
    /// If it cannot be downloaded, is larger, or has another digest.
    pub async fn small_file(
        &self,
        url: &str,
        max_bytes: usize,
        expected: Option<&Digest>,
    ) -> Result<Bytes, HttpError> {
        let read = async || {
            let response = get_current_file(&self.sessions, url).await?;
            let response = expect_whole_file(response, url).await?;
            let compressed = response.compression_error("the file");
            // the request may have been redirected; the error names the URL that answered
            let answered_at = response.url.clone();
            let content = match expected {
                Some(digest) => response.bytes_of(max_bytes, digest).await,
                None if is_archive(url) => response.sent_bytes(max_bytes).await,
                None => response.bytes(max_bytes).await,
            };
            let bytes = content.map_err(BodyFailure::<HttpError>::reading)?;
            match expected.filter(|digest| !digest.matches(&bytes)) {
                // a page that is not marked as such, instead of a document; a digest decides
                None if expected.is_none() && is_html(&bytes) && !is_page(url) => {
                    Err(page_error(&answered_at, None, "the file", &bytes).into())
                }
                None => Ok(bytes),
                Some(expected) => {
                    let found = Digest::sha256(&bytes);
                    let why = format!("its bytes are {found}, not {expected}");
                    // if the response is marked as compressed, that explains the digest
                    Err(BodyFailure::Wrong(compressed.unwrap_or_else(|| {
                        HttpError::new(ErrorKind::Invalid, why).at(&answered_at)
                    })))
                }
            }
        };
        self.sessions
            .transport()
            .retry_policy()
            .read_body(read)
            .await
    }

    /// Downloads a file of at most `document_bytes` of the limits.
    ///
    /// # Errors
    /// As for [`small_file`](Resolver::small_file).
    pub async fn document(&self, url: &str) -> Result<Bytes, HttpError> {
        let limit = self.limits().document_bytes;
        self.small_file(url, limit, None).await
    }

    /// Sends a JSON document by POST and returns the answer, of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// If the request fails, or the answer is larger.
    pub async fn post_json(
        &self,
        url: &str,
        body: String,
        max_bytes: usize,
    ) -> Result<Bytes, HttpError> {
        let read = async || {
            let response = post_json(&self.sessions, url, body.clone()).await?;
            let bytes = expect_success(response).await?.bytes(max_bytes).await;
            bytes.map_err(BodyFailure::reading)
        };
        self.sessions
            .transport()
            .retry_policy()
            .read_body(read)
            .await
    }

    /// Downloads a file of at most `max_bytes` bytes, once per run.
    ///
    /// # Errors
    /// If it cannot be downloaded, or is larger.
    pub async fn shared_file(&self, url: &str, max_bytes: usize) -> Result<Bytes, HttpError> {
        self.shared
            .get_or_try_init(url.to_owned(), || self.small_file(url, max_bytes, None))
            .await
    }

    /// The index of an HTTP repository of charts.
    ///
    /// # Errors
    /// If it cannot be downloaded.
    pub async fn index(&self, url: &str) -> Result<Bytes, ResolveError> {
        let index = self.shared_file(url, self.limits().chart_index_bytes).await;
        index.map_err(|error| ResolveError::from(error).about("the index of its repository"))
    }

    /// Downloads a small blob such as a config, verifies its digest and stores it for `pull`.
    ///
    /// # Errors
    /// If it cannot be downloaded, or is larger than `document_bytes` of the limits.
    pub async fn small_blob(
        &self,
        name: &ImageRef,
        blob: &Descriptor,
    ) -> Result<Vec<u8>, ResolveError> {
        self.blob_up_to(name, blob, self.limits().document_bytes as u64)
            .await
    }

    /// Downloads a blob of at most `limit` bytes, verifies its digest and stores it for `pull`.
    ///
    /// # Errors
    /// If it cannot be downloaded, or is larger.
    pub async fn blob_up_to(
        &self,
        name: &ImageRef,
        blob: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, ResolveError> {
        // the size comes from a manifest that anybody may have written, and the blob is read into
        // memory below
        if blob.size > limit {
            return Err(format!(
                "its blob {} has {} bytes, more than {limit}",
                blob.digest, blob.size
            )
            .into());
        }
        if self.is_stored(blob) {
            return self.disk.read(blob).map_err(ResolveError::from);
        }
        self.refuse_network(Some(blob), &blob.digest.to_string())?;
        let registry = name.registry.as_str().into();
        let repository = name.repository.as_str().into();
        let part = EntryPart {
            descriptor: blob.clone(),
            origin: PartOrigin::Blob {
                registry,
                repository,
            },
        };
        let limits = *self.limits();
        let transfer = Transfer {
            source: Arc::new(Upstreams::new(self.sessions.clone())),
            sink: Arc::new(LocalSink::new(
                Arc::new(self.disk.clone()),
                limits,
                None,
                None,
            )),
            limits,
            progress: Arc::new(SilentProgress),
            activity: Activity::default(),
        };
        transfer
            .run(&part, Arc::new(UnlimitedSlot))
            .await
            .map_err(|error| match error.side {
                TransferSide::Source => ResolveError::from(*error.why),
                _ => ResolveError::local(error.to_string()),
            })?;
        self.disk.read(blob).map_err(ResolveError::from)
    }
}
