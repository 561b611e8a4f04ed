//! An object that is written in one pass, by an upload in parts. It is there when it was finished,
//! and not before.

use super::block_on::block_on;
use super::objects::{Bucket, BucketObject};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{ErrorKind, HttpError};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

/// Size of a part in bytes, where an object is not expected to need larger ones.
const PART: u64 = 16 << 20;
/// How many parts of this size an object is expected to have at most. S3 takes 10,000.
const PARTS: u64 = 9_000;
/// How many parts are sent at one time. One more is filled meanwhile, and one waits.
const AT_ONCE: usize = 2;

/// Writes an object. What is written is sent part by part.
pub struct ObjectWriter {
    upload: Arc<ObjectUpload>,
    part: Vec<u8>,
    part_size: usize,
    size: u64,
    parts: mpsc::Sender<Bytes>,
    /// The sender of parts; `None` where it has failed.
    sending: Option<JoinHandle<Result<Vec<String>, HttpError>>>,
}

/// An upload under way.
struct ObjectUpload {
    bucket: Bucket,
    key: String,
    id: String,
    /// What stands there meanwhile.
    before: Option<BucketObject>,
    is_finished: AtomicBool,
}

/// Gives an upload up when it is dropped before the object is finished. Whoever may be interrupted
/// while another thread writes holds it.
pub struct UploadGuard(Arc<ObjectUpload>, AbortHandle);

impl ObjectWriter {
    /// Begins an object with this key, which is expected to have at most `expected` bytes.
    ///
    /// # Errors
    /// When the store does not answer, or refuses.
    pub fn begin(
        bucket: &Bucket,
        key: &str,
        expected: u64,
    ) -> Result<(ObjectWriter, UploadGuard), HttpError> {
        let (bucket, key) = (bucket.clone(), key.to_owned());
        let (parts, filled) = mpsc::channel(1);
        let (upload, sending) = block_on(async move {
            let before = bucket.look(&key).await?;
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
        let part_size = PART.max(expected.div_ceil(PARTS)) as usize;
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

    /// Finishes the object: all that was written is there then, in place of what stood there.
    ///
    /// # Errors
    /// When a part was not taken, or the store refuses.
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
            let parts = ended(sent).await?;
            upload
                .bucket
                .complete_parts(&upload.key, &upload.id, parts, size, upload.before.as_ref())
                .await?;
            upload.is_finished.store(true, Ordering::SeqCst);
            Ok(())
        })
    }

    /// Hands the part to the sender.
    fn send_part(&mut self) -> Result<(), HttpError> {
        let (part, parts) = (std::mem::take(&mut self.part), self.parts.clone());
        if block_on(async move { Ok(parts.send(part.into()).await.is_ok()) })? {
            return Ok(());
        }
        let sent = self.sending.take();
        block_on(async move { ended(sent).await.and_then(|_| Err(stopped())) })
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.part_size - self.part.len());
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
        sending.abort();
        let upload = upload.clone();
        // what cannot be given up is the store's to remove, by its rule for uploads that nobody
        // finishes
        let _ = block_on(async move { upload.bucket.abort_parts(&upload.key, &upload.id).await });
    }
}

/// Sends the parts as they are filled. Returns their identifiers, in order.
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
    sending.buffered(AT_ONCE).try_collect().await
}

/// What came of sending.
async fn ended(
    sending: Option<JoinHandle<Result<Vec<String>, HttpError>>>,
) -> Result<Vec<String>, HttpError> {
    match sending {
        Some(sending) => sending.await.unwrap_or_else(|_| Err(stopped())),
        None => Err(stopped()),
    }
}

fn stopped() -> HttpError {
    HttpError::new(ErrorKind::Local, "the upload was broken off")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::OpenObject;
    use crate::{RangeRead, RangeReader};
    use std::io::Read;

    #[test]
    fn an_object_is_there_when_it_is_finished_and_not_before() {
        let bucket = Bucket::in_memory();
        let bytes: Vec<u8> = (0..PART as usize * 2 + 100)
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
        RangeReader::new(object.clone(), PART - 5..PART + 5)
            .read_to_end(&mut part)
            .unwrap();
        assert_eq!(part, &bytes[PART as usize - 5..][..10]);
        // another object takes its place
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", 0).unwrap();
        writer.write_all(b"other").unwrap();
        writer.finish().unwrap();
        drop(guard);
        let error = RangeReader::new(object, 0..5)
            .read(&mut [0; 5])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("it was written anew while it was read"),
            "{error}"
        );
    }

    #[test]
    fn an_upload_that_is_given_up_leaves_nothing() {
        let bucket = Bucket::in_memory();
        let (mut writer, guard) = ObjectWriter::begin(&bucket, "b", 0).unwrap();
        writer.write_all(b"half").unwrap();
        drop(guard);
        assert!(writer.finish().is_err());
        assert!(OpenObject::open(&bucket, "b").is_err());
    }
}
