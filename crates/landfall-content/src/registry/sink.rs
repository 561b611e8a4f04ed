//! Writes blobs to a repository of a registry. A blob that is present is not sent; a blob that
//! another repository has is mounted if possible.

use super::challenge::TokenScope;
use super::error_codes::is_quota_error;
use super::manifests::says_nothing_for_head;
use super::response::is_page_for_head;
use super::session::RegistrySession;
use super::upload::{FailedUpload, UploadEnd, UploadSession, may_restart_upload, refuses_mount};
use crate::{BlobSink, FailedAttempt, FailureCause, OpenedPart, PartOpener, TransferError};
use futures_util::future::BoxFuture;
use landfall_http::{
    ErrorKind, HttpError, HttpRequest, HttpResponse, RequestPurpose, send_from_offset,
};
use landfall_model::{Descriptor, Digest, locked};
use reqwest::header::RANGE;
use reqwest::{Method, StatusCode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tracing::info;
use url::Url;

/// A repository of a registry as a [`BlobSink`].
pub struct RegistrySink {
    session: Arc<RegistrySession>,
    repository: Arc<str>,
    /// The repository that blobs are mounted from.
    from: Option<Arc<str>>,
    refuses_mounts: AtomicBool,
    /// How the last attempt at each blob ended.
    ends: Mutex<HashMap<Digest, UploadEnd>>,
}

impl RegistrySink {
    /// Returns a sink for `repository`. Blobs are mounted from the repository `from` if it is given
    /// and the registry supports mounts.
    pub fn new(
        session: Arc<RegistrySession>,
        repository: Arc<str>,
        from: Option<Arc<str>>,
    ) -> RegistrySink {
        RegistrySink {
            session,
            repository,
            from,
            refuses_mounts: AtomicBool::new(false),
            ends: Mutex::default(),
        }
    }
}

impl BlobSink for RegistrySink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        _in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        Box::pin(async move {
            let blob = &opener.part().descriptor;
            let begun = self.begin(blob).await;
            let Some(upload) = begun.map_err(TransferError::destination)? else {
                return Ok(false);
            };
            let session = &*self.session;
            let repository = &*self.repository;
            // registries discard a body that broke off, so each attempt starts at byte 0
            let sent = session.send_body(repository, blob, upload.clone(), opener);
            if let Err(failed) = sent.await {
                // a source that broke off ends the body, which looks like a failure of the
                // destination
                let Some(failure) = opener.failure() else {
                    let cause = self.failure_cause(&blob.digest, &failed);
                    let error = TransferError::destination(failed.error);
                    return Err(FailedAttempt::new(error, cause));
                };
                // it would stay open until it expires, and registries limit how many are open
                session.cancel(repository, upload).await;
                return Err(failure);
            }
            // only now, because the blob is certain to be in this repository
            session.learn_self_mounts(repository, &blob.digest).await;
            Ok(true)
        })
    }
}

impl RegistrySink {
    /// Begins the upload of a blob. Returns `None` if the repository has the blob now.
    async fn begin(&self, blob: &Descriptor) -> Result<Option<UploadSession>, HttpError> {
        let session = &*self.session;
        let repository = &*self.repository;
        let digest = &blob.digest;
        if let Some(from) = self
            .from
            .as_deref()
            .filter(|_| !self.refuses_mounts.load(Ordering::Relaxed))
        {
            match session
                .open_upload(repository, Some(digest), Some(from))
                .await
            {
                Ok(None) => {
                    info!(%digest, repository, from, "mounted");
                    return Ok(None);
                }
                // a registry that refuses the mount may have the blob in this repository already
                Ok(Some(upload)) if session.has_blob(repository, digest).await? => {
                    // an earlier run has uploaded it, so the upload that was opened is not needed
                    info!(%digest, repository, "already in the repository");
                    session.cancel(repository, upload).await;
                    return Ok(None);
                }
                Ok(Some(upload)) => {
                    info!(%digest, repository, from, "not mounted; uploading");
                    return Ok(Some(upload));
                }
                Err(error)
                    // with an exhausted quota, the upload would fail as well
                    if refuses_mount(&error) && !is_quota_error(error.kind, &error.codes) =>
                {
                    self.refuses_mounts.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        // one request looks up the blob and, if it is missing, opens its upload
        if session.self_mounts.are_known_to_work() {
            match session
                .open_upload(repository, Some(digest), Some(repository))
                .await
            {
                // learned in another repository, where the rights may be others
                Err(error)
                    if refuses_mount(&error) && !is_quota_error(error.kind, &error.codes) => {}
                opened => return opened,
            }
        }
        if session.has_blob(repository, digest).await? {
            info!(%digest, repository, "already in the repository");
            return Ok(None);
        }
        info!(%digest, repository, size = blob.size, "uploading");
        session.open_upload(repository, Some(digest), None).await
    }

    /// Returns why a body failed, which decides whether another attempt is made.
    fn failure_cause(&self, digest: &Digest, failed: &FailedUpload) -> FailureCause {
        let before = locked(&self.ends).remove(digest);
        if let Some(host) = &failed.silent_host {
            self.session.note_misdirected_uploads(host.clone());
            return FailureCause::SinkAdapted;
        }
        if self.session.reduce_body_size(failed, before) || self.session.avoid_whole_puts(failed) {
            return FailureCause::SinkAdapted;
        }
        // a chunk is read from the middle of the blob, so only the registry sees the whole digest
        if failed.error.has_code("DIGEST_INVALID") {
            return FailureCause::Wrong;
        }
        if !may_restart_upload(&failed.error) {
            return FailureCause::Final;
        }
        // the upload may be gone or broken, so the next attempt begins a new one
        locked(&self.ends).insert(digest.clone(), failed.end);
        FailureCause::Sink
    }
}

// Reads and looks up the blobs of a registry.

impl RegistrySession {
    /// Opens a blob at `offset`, or at 0 if the registry ignores ranges. The digest is not verified
    /// here.
    ///
    /// # Errors
    /// If the blob does not exist, or the request fails; with the message of the registry.
    pub async fn blob(
        &self,
        repository: &str,
        blob: &Descriptor,
        offset: u64,
    ) -> Result<OpenedPart, HttpError> {
        let url = self.blob_url(repository, &blob.digest)?;
        let scope = self.scope(repository, false);
        let send = |range: Option<String>| {
            let request = HttpRequest::new(Method::GET, url.clone(), RequestPurpose::Registry);
            // `send_from_offset` decides whether a range is requested at all
            self.send(request.optional_header(RANGE, range.as_deref()), &scope)
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
        let stream = response.content_stream(blob.size - start, &name).await?;
        Ok(OpenedPart::ranged(
            start,
            stream,
            &self.transport,
            &self.base,
        ))
    }

    /// Returns the name of a blob in messages.
    fn blob_name(&self, repository: &str, digest: &Digest) -> String {
        format!("blob {digest} of {}/{repository}", self.host())
    }

    fn blob_url(&self, repository: &str, digest: &Digest) -> Result<Url, HttpError> {
        self.url(repository, &format!("blobs/{digest}"))
    }

    /// Whether the repository has the blob. An unclear response counts as no: the upload then shows
    /// whether the registry has it.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn has_blob(&self, repository: &str, digest: &Digest) -> Result<bool, HttpError> {
        let scope = self.scope(repository, true);
        let response = self.head_blob(repository, digest, &scope).await?;
        // 403 and other errors mean "unknown"
        Ok(response.status == StatusCode::OK && !is_page_for_head(&response))
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
        let scope = self.scope(repository, false);
        let response = self.head_blob(repository, &blob.digest, &scope).await?;
        let is_elsewhere = response.url.origin() != self.base.origin();
        if says_nothing_for_head(response.status, is_elsewhere) {
            // only the beginning is read
            return match self.blob(repository, blob, 0).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            };
        }
        let response = self
            .expect_status(
                response,
                &scope,
                || self.blob_name(repository, &blob.digest),
                |status| matches!(status, StatusCode::OK | StatusCode::NOT_FOUND),
            )
            .await?;
        let has_size = response
            .content_length()
            .is_none_or(|length| length == blob.size);
        Ok(response.status == StatusCode::OK && !is_page_for_head(&response) && has_size)
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
        let scope = self.scope(repository, false);
        let response = match self.head_blob(repository, digest, &scope).await {
            Err(error) if error.kind == ErrorKind::Denied => return Ok(None),
            response => response?,
        };
        match response.status {
            StatusCode::OK if !is_page_for_head(&response) => Ok(response.content_length()),
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

    async fn head_blob(
        &self,
        repository: &str,
        digest: &Digest,
        scope: &TokenScope,
    ) -> Result<HttpResponse, HttpError> {
        let url = self.blob_url(repository, digest)?;
        let request = HttpRequest::new(Method::HEAD, url, RequestPurpose::Registry);
        self.send(request, scope).await
    }
}
