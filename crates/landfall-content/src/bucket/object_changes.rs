//! Writes and deletes the objects of a folder.

use super::location::{BucketProtocol, is_not_implemented};
use super::objects::{Bucket, BucketObject, PutOutcome};
use super::protocol_fixes::if_generation;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ErrorKind, HttpError};
use object_store::{PutMode, PutOptions, PutPayload, UpdateVersion};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// How many single objects are deleted at the same time.
const CONCURRENT_DELETIONS: usize = 16;

/// Whether two times differ by less than a second: a listing may have milliseconds, and a header
/// has seconds.
fn is_same_second(one: SystemTime, other: SystemTime) -> bool {
    one.duration_since(other)
        .or_else(|_| other.duration_since(one))
        .is_ok_and(|apart| apart.as_secs() == 0)
}

impl Bucket {
    /// Writes a small object: by [`PutMode::Create`] only if no object has this key, by
    /// [`PutMode::Update`] only if the object still has this version.
    ///
    /// # Errors
    /// If the request fails for another reason than the condition.
    pub async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        mode: &PutMode,
    ) -> Result<PutOutcome, HttpError> {
        let is_conditional = match mode {
            PutMode::Overwrite => false,
            // the store reports neither etag nor version, so there is nothing to compare
            PutMode::Update(UpdateVersion {
                e_tag: None,
                version: None,
            }) => false,
            PutMode::Create | PutMode::Update(_) => {
                !self.is_unconditional().load(Ordering::Relaxed)
            }
        };
        let mut options = PutOptions::default();
        if is_conditional {
            options.mode = mode.clone();
        }
        match self
            .cloud()
            .put_opts(&self.path(key), PutPayload::from(bytes.clone()), options)
            .await
        {
            Ok(put) => Ok(PutOutcome::Written(put.into())),
            // without a condition, the same statuses mean another failure
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) if is_conditional => Ok(PutOutcome::Refused),
            Err(error) => {
                let error = self.request_error(key, error);
                // older releases of some stores do not implement conditional writes
                if is_conditional && matches!(error.kind, ErrorKind::Status(501)) {
                    self.is_unconditional().store(true, Ordering::Relaxed);
                    return Box::pin(self.put(key, bytes, mode)).await;
                }
                Err(error)
            }
        }
    }

    /// Deletes objects, many with one request if the store supports that. A missing object is not
    /// an error.
    ///
    /// # Errors
    /// If an object cannot be deleted. Other objects may have been deleted already.
    pub async fn delete(&self, keys: Vec<String>) -> Result<(), HttpError> {
        let paths: Vec<_> = keys.iter().map(|key| Ok(self.path(key))).collect();
        let mut deleted = self
            .cloud()
            .delete_stream(futures_util::stream::iter(paths).boxed());
        while let Some(result) = deleted.next().await {
            match result {
                // a failed condition means that the object was written again, so it is kept
                Ok(_)
                | Err(
                    object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. },
                ) => {}
                // as Google Cloud Storage with the protocol of S3
                Err(error) if is_not_implemented(&error) => {
                    let words = "the object store cannot delete several objects with one request; \
                                 set AWS_DISABLE_BULK_DELETE=true";
                    return Err(HttpError::new(ErrorKind::Invalid, words).about(self.url("")));
                }
                Err(error) => return Err(self.request_error("", error)),
            }
        }
        Ok(())
    }

    /// Deletes objects that were listed. In Google Cloud Storage, an object that was written again
    /// after the listing is kept, even if the deletion is delayed. Other stores get no condition:
    /// in S3, equal bytes have the same etag, and for Azure, the condition would have to be signed.
    ///
    /// # Errors
    /// Like [`Bucket::delete`].
    pub async fn delete_listed(&self, objects: &[BucketObject]) -> Result<(), HttpError> {
        if self.location().protocol != BucketProtocol::Google {
            return self
                .delete(objects.iter().map(|object| object.key.clone()).collect())
                .await;
        }
        let deletions = futures_util::stream::iter(objects).map(|listed| async move {
            // a listing does not have the generation
            let found = self.head(&listed.key).await?;
            let same = found.filter(|found| is_same_second(found.modified, listed.modified));
            let Some(generation) = same.and_then(|found| found.version?.parse().ok()) else {
                return Ok(());
            };
            if_generation(generation, self.delete(vec![listed.key.clone()])).await
        });
        deletions
            .buffer_unordered(CONCURRENT_DELETIONS)
            .try_collect()
            .await
    }
}
