//! A repository of a registry as a sink: a blob is left where it is there, mounted where that
//! helps, else sent.

use super::error_codes::is_quota_error;
use super::session::RegistrySession;
use super::upload::{refuses_mount, starts_anew};
use super::upload_session::{FailedUpload, UploadSession};
use crate::{BlobSink, BlobWrite, FailedAttempt, FailureCause, PartOpener, TransferError};
use futures_util::future::BoxFuture;
use landfall_http::HttpError;
use landfall_model::{Descriptor, Digest};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::info;

/// A repository of a registry as a [`BlobSink`].
#[derive(Clone)]
pub struct RegistrySink(Arc<RegistrySinkInner>);

struct RegistrySinkInner {
    session: Arc<RegistrySession>,
    repository: Arc<str>,
    /// Where to mount blobs from.
    from: Option<Arc<str>>,
    refuses_mounts: AtomicBool,
    /// How many bytes of a blob's body were handed over when the last attempt was cut.
    cuts: Mutex<HashMap<Digest, u64>>,
}

impl RegistrySink {
    /// `repository` of the session's registry. Blobs are mounted from the repository `from`, where
    /// one is named and the registry agrees.
    pub fn new(
        session: Arc<RegistrySession>,
        repository: Arc<str>,
        from: Option<Arc<str>>,
    ) -> RegistrySink {
        let (refuses_mounts, cuts) = (AtomicBool::new(false), Mutex::default());
        RegistrySink(Arc::new(RegistrySinkInner {
            session,
            repository,
            from,
            refuses_mounts,
            cuts,
        }))
    }
}

impl BlobSink for RegistrySink {
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        _in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>> {
        Box::pin(async move {
            let upload = self
                .0
                .begin(blob)
                .await
                .map_err(TransferError::destination)?;
            Ok(upload.map(|upload| {
                let (sink, blob) = (self.0.clone(), blob.clone());
                Box::new(BlobUpload { sink, blob, upload }) as Box<dyn BlobWrite>
            }))
        })
    }
}

impl RegistrySinkInner {
    /// Begins the upload of a blob; `None` where the repository has it now.
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
                Ok(Some(upload)) if session.has_blob(repository, digest).await? => {
                    // an earlier run brought it; the upload that was opened is given back
                    info!(%digest, repository, "already in the repository");
                    session.cancel(repository, upload).await;
                    return Ok(None);
                }
                Ok(Some(upload)) => {
                    info!(%digest, repository, from, "not mounted; uploading");
                    return Ok(Some(upload));
                }
                Err(error)
                    if refuses_mount(&error) && !is_quota_error(error.kind, &error.codes) =>
                {
                    self.refuses_mounts.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        if session.self_mounts.work() {
            return session
                .open_upload(repository, Some(digest), Some(repository))
                .await;
        }
        if session.has_blob(repository, digest).await? {
            info!(%digest, repository, "already in the repository");
            return Ok(None);
        }
        info!(%digest, repository, size = blob.size, "uploading");
        session.open_upload(repository, Some(digest), None).await
    }

    fn cuts(&self) -> MutexGuard<'_, HashMap<Digest, u64>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a body that failed says about another attempt.
    fn judge(&self, digest: &Digest, failed: &FailedUpload) -> FailureCause {
        let before = self.cuts().remove(digest);
        if self.session.smaller_bodies(failed, before) {
            return FailureCause::SinkLearned;
        }
        if !starts_anew(&failed.error) {
            return FailureCause::Final;
        }
        // an upload may be gone or broken: a new one is begun
        if let Some(cut) = failed.cut {
            self.cuts().insert(digest.clone(), cut);
        }
        FailureCause::Sink
    }
}

/// A blob that is being sent. A registry keeps nothing of a body that broke off: the next attempt
/// begins anew.
struct BlobUpload {
    sink: Arc<RegistrySinkInner>,
    blob: Descriptor,
    upload: UploadSession,
}

impl BlobWrite for BlobUpload {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let BlobUpload { sink, blob, upload } = *self;
            let (session, repository) = (&*sink.session, &*sink.repository);
            if let Err(failed) = session.send_body(repository, &blob, upload, opener).await {
                return Err(opener.failure().unwrap_or_else(|| {
                    let cause = sink.judge(&blob.digest, &failed);
                    FailedAttempt::new(TransferError::destination(failed.error), cause)
                }));
            }
            session.learn_self_mounts(repository, &blob.digest).await;
            Ok(())
        })
    }
}
