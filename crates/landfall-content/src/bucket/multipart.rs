//! Uploads in parts: the object is there when its upload is completed, and not before.

use super::objects::{Bucket, BucketObject};
use bytes::Bytes;
use landfall_http::HttpError;
use object_store::PutPayload;

impl Bucket {
    /// Begins an upload in parts. The object is there when the upload is completed, not before.
    ///
    /// # Errors
    /// When the store does not answer, or refuses.
    pub async fn begin_parts(&self, key: &str) -> Result<String, HttpError> {
        self.cloud()
            .create_multipart(&self.path(key))
            .await
            .map_err(|error| self.failed(key, error))
    }

    /// Uploads the part at `index`, from 0 on; another of the same index replaces it. Returns its
    /// identifier.
    ///
    /// # Errors
    /// As [`Bucket::begin_parts`]; [`ErrorKind::NotFound`] where there is no such upload.
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
            .map_err(|error| self.failed(key, error))
    }

    /// Completes an upload of `size` bytes from all its parts, in order. An upload that another
    /// process completed, or of which the store's answer was lost, is complete too: then another
    /// object than `before` stands there.
    ///
    /// # Errors
    /// As [`Bucket::put_part`].
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
        let error = self.failed(key, error);
        match self.look(key).await {
            Ok(Some(object)) if object.size == size && Some(&object) != before => Ok(()),
            _ => Err(error),
        }
    }

    /// Gives an upload up; what came of it is deleted.
    ///
    /// # Errors
    /// As [`Bucket::begin_parts`].
    pub async fn abort_parts(&self, key: &str, upload: &String) -> Result<(), HttpError> {
        match self.cloud().abort_multipart(&self.path(key), upload).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(key, error)),
        }
    }
}
