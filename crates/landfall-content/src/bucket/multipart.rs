//! Uploads in parts. The object appears when its upload is completed.

use super::bucket_object::BucketObject;
use super::objects::Bucket;
use bytes::Bytes;
use landfall_http::HttpError;
use object_store::PutPayload;

/// The size in bytes of the largest object that is uploaded. Parts are kept in memory and grow with
/// the expected size of the object, so this limit bounds them even if a lock names a false size.
pub const MAX_OBJECT_SIZE: u64 = 5 << 40;

impl Bucket {
    /// Begins an upload in parts and returns its identifier.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn begin_parts(&self, key: &str) -> Result<String, HttpError> {
        self.cloud()
            .create_multipart(&self.path(key))
            .await
            .map_err(|error| self.request_error(key, error))
    }

    /// Uploads the part with this index, counted from 0, and returns its identifier. It replaces an
    /// earlier part with the same index.
    ///
    /// # Errors
    /// If the request fails; of kind `NotFound` if the upload does not exist.
    pub async fn put_part(
        &self,
        key: &str,
        upload: &String,
        index: usize,
        bytes: Bytes,
    ) -> Result<String, HttpError> {
        let put = self
            .cloud()
            .put_part(&self.path(key), upload, index, PutPayload::from(bytes))
            .await;
        put.map(|part| part.content_id)
            .map_err(|error| self.request_error(key, error))
    }

    /// Completes an upload of `size` bytes from all its parts, in order. If another process has
    /// completed it, or the response was lost, the request fails although the object exists.
    /// Therefore, an object of this size counts as success unless it is `before`, the object that
    /// existed when the upload began.
    ///
    /// # Errors
    /// Like [`Bucket::put_part`].
    pub async fn complete_parts(
        &self,
        key: &str,
        upload: &String,
        parts: Vec<String>,
        size: u64,
        before: Option<&BucketObject>,
    ) -> Result<(), HttpError> {
        let parts = parts
            .into_iter()
            .map(|content_id| object_store::multipart::PartId { content_id })
            .collect();
        let Err(error) = self
            .cloud()
            .complete_multipart(&self.path(key), upload, parts)
            .await
        else {
            return Ok(());
        };
        let error = self.request_error(key, error);
        match self.head(key).await {
            // the etag of an upload in parts is not the digest of the object, so the object's size
            // is compared, and whether the object changed
            Ok(Some(object)) if object.size == size && Some(&object) != before => Ok(()),
            _ => Err(error),
        }
    }

    /// Aborts an upload, which deletes its parts.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn abort_parts(&self, key: &str, upload: &String) -> Result<(), HttpError> {
        match self.cloud().abort_multipart(&self.path(key), upload).await {
            // an upload that does not exist any more has no parts to delete
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.request_error(key, error)),
        }
    }
}
