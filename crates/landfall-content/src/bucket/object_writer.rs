//! Writes an object in one pass by an upload in parts. The object appears when the writer is
//! finished.

use super::cloud_store::block_on;
use super::objects::{Bucket, BucketObject};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ErrorKind, HttpError};
use object_store::PutPayload;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

/// The smallest size of a part in bytes.
const MIN_PART_SIZE: u64 = 16 << 20;
/// The largest number of parts that is planned for. S3 accepts 10,000; the rest is a margin for an
/// object that becomes longer than expected.
const MAX_PARTS: u64 = 9_000;
/// How many parts are sent at the same time. One more part is being filled and one may wait, so the
/// memory for parts is bounded.
const CONCURRENT_PARTS: usize = 2;

/// Writes an object. The bytes are sent part by part.
pub struct ObjectWriter {
    upload: Arc<ObjectUpload>,
    part: Vec<u8>,
    part_size: usize,
    size: u64,
    parts: mpsc::Sender<Bytes>,
    /// The task that sends parts; `None` after it has failed.
    sending: Option<JoinHandle<Result<Vec<String>, HttpError>>>,
}

/// The upload of an object that is being written.
struct ObjectUpload {
    bucket: Bucket,
    key: String,
    id: String,
    /// The object that is to be replaced.
    before: Option<BucketObject>,
    is_finished: AtomicBool,
}

/// Aborts an upload if the guard is dropped before the object is finished. A caller that may be
/// interrupted while another thread writes must hold the guard.
pub struct UploadGuard(Arc<ObjectUpload>, AbortHandle);

impl ObjectWriter {
    /// Begins an object with this key. It is expected to have at most `expected` bytes.
    ///
    /// # Errors
    /// If a request fails.
    pub fn begin(
        bucket: &Bucket,
        key: &str,
        expected: u64,
    ) -> Result<(ObjectWriter, UploadGuard), HttpError> {
        let bucket = bucket.clone();
        let key = key.to_owned();
        // one part may wait here, which bounds the memory for parts
        let (parts, filled) = mpsc::channel(1);
        let (upload, sending) = block_on(async move {
            let before = bucket.head(&key).await?;
            let id = bucket.begin_parts(&key).await?;
            let upload = Arc::new(ObjectUpload {
                bucket,
                key,
                id,
                before,
                is_finished: AtomicBool::new(false),
            });
            let sending = tokio::spawn(send(upload.clone(), filled));
            Ok((upload, sending))
        })?;
        let guard = UploadGuard(upload.clone(), sending.abort_handle());
        // larger parts for large objects, so that the number of parts stays below the limit of S3
        let expected = expected.min(MAX_OBJECT_SIZE);
        let part_size = MIN_PART_SIZE.max(expected.div_ceil(MAX_PARTS)) as usize;
        Ok((
            ObjectWriter {
                upload,
                part: Vec::new(),
                part_size,
                size: 0,
                parts,
                sending: Some(sending),
            },
            guard,
        ))
    }

    /// Sends the remaining bytes and completes the upload, which replaces an existing object.
    ///
    /// # Errors
    /// If a part could not be sent, or the upload cannot be completed.
    pub fn finish(mut self) -> Result<(), HttpError> {
        if !self.part.is_empty() {
            self.send_part()?;
        }
        let sent = self.sending.take();
        let ObjectWriter {
            upload,
            parts,
            size,
            ..
        } = self;
        drop(parts);
        block_on(async move {
            let parts = sending_result(sent).await?;
            upload
                .bucket
                .complete_parts(&upload.key, &upload.id, parts, size, upload.before.as_ref())
                .await?;
            upload.is_finished.store(true, Ordering::SeqCst);
            Ok(())
        })
    }

    /// Hands the filled part to the task that sends parts.
    fn send_part(&mut self) -> Result<(), HttpError> {
        let part = std::mem::take(&mut self.part);
        let parts = self.parts.clone();
        if block_on(async move { Ok(parts.send(part.into()).await.is_ok()) })? {
            return Ok(());
        }
        // the task drops its receiver only if it has failed, so its result is the error
        let sent = self.sending.take();
        block_on(async move { sending_result(sent).await.and_then(|_| Err(stopped())) })
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.part_size - self.part.len());
        // the whole part at once: growing step by step would copy it and exceed the planned memory
        self.part.reserve_exact(self.part_size - self.part.len());
        self.part.extend_from_slice(&bytes[..count]);
        self.size += count as u64;
        if self.part.len() == self.part_size {
            self.send_part().map_err(io::Error::other)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for UploadGuard {
    fn drop(&mut self) {
        let UploadGuard(upload, sending) = self;
        if upload.is_finished.load(Ordering::SeqCst) {
            return;
        }
        // stop sending first: a part that is uploaded after the abort could stay in the store
        sending.abort();
        let upload = upload.clone();
        // if this fails, the bucket's lifecycle rule for incomplete uploads has to remove the parts
        let _ = block_on(async move { upload.bucket.abort_parts(&upload.key, &upload.id).await });
    }
}

/// Sends the parts as they are filled, and returns their identifiers in order.
async fn send(
    upload: Arc<ObjectUpload>,
    filled: mpsc::Receiver<Bytes>,
) -> Result<Vec<String>, HttpError> {
    let filled = futures_util::stream::unfold(filled, async |mut filled| {
        Some((filled.recv().await?, filled))
    });
    let sending = filled.enumerate().map(|(index, part)| {
        let upload = upload.clone();
        async move {
            upload
                .bucket
                .put_part(&upload.key, &upload.id, index, part)
                .await
        }
    });
    sending.buffered(CONCURRENT_PARTS).try_collect().await
}

/// Waits for the task that sends parts, and returns its result.
async fn sending_result(
    sending: Option<JoinHandle<Result<Vec<String>, HttpError>>>,
) -> Result<Vec<String>, HttpError> {
    match sending {
        Some(sending) => sending.await.unwrap_or_else(|_| Err(stopped())),
        None => Err(stopped()),
    }
}

fn stopped() -> HttpError {
    HttpError::new(ErrorKind::Local, "the upload was aborted")
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::OpenObject;
    use crate::{RangeRead, RangeReader};
    use std::io::Read;

    #[test]
    fn an_object_appears_when_it_is_finished() {
        let bucket = Bucket::in_memory();
        let bytes: Vec<u8> = (0..MIN_PART_SIZE as usize * 2 + 100)
            .map(|n| ((n * 31) >> 7) as u8)
            .collect();
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", 0).unwrap();
        writer.write_all(&bytes).unwrap();
        assert!(OpenObject::open(&bucket, "b").unwrap_err().kind == ErrorKind::NotFound);
        writer.finish().unwrap();
        drop(guard);
        let object = OpenObject::open(&bucket, "b").unwrap();
        assert_eq!(
            (object.url(), object.size()),
            ("s3://memory/at/b", bytes.len() as u64)
        );
        let object: Arc<dyn RangeRead> = Arc::new(object);
        let mut part = Vec::new();
        RangeReader::new(object.clone(), MIN_PART_SIZE - 5..MIN_PART_SIZE + 5)
            .read_to_end(&mut part)
            .unwrap();
        assert_eq!(part, &bytes[MIN_PART_SIZE as usize - 5..][..10]);
        // another object replaces it
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", 0).unwrap();
        writer.write_all(b"other").unwrap();
        writer.finish().unwrap();
        drop(guard);
        let error = RangeReader::new(object, 0..5)
            .read(&mut [0; 5])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the object was replaced while it was read"),
            "{error}"
        );
    }

    #[test]
    fn an_impossible_expected_size_does_not_determine_the_memory() {
        let bucket = Bucket::in_memory();
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", u64::MAX).unwrap();
        writer.write_all(b"small").unwrap();
        writer.finish().unwrap();
        drop(guard);
        assert_eq!(OpenObject::open(&bucket, "b").unwrap().size(), 5);
    }

    #[test]
    fn an_aborted_upload_creates_no_object() {
        let bucket = Bucket::in_memory();
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", 0).unwrap();
        writer.write_all(b"half").unwrap();
        drop(guard);
        assert!(writer.finish().is_err());
        assert!(OpenObject::open(&bucket, "b").is_err());
    }
}
