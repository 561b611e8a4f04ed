//! Writes blobs to the store in an object store. A small blob is put as one object when it is
//! complete. A big one is uploaded in parts, and becomes an object when its digest is verified.

use super::bucket_store;
use super::bucket_store::{BucketStore, StoreTimeouts, refused};
use super::upload_record::{MIN_PART_SIZE, OwnUploadRecord, encode_hash_state};
use crate::bucket::{BucketObject, block_on};
use crate::verified_writer::BlobHash;
use crate::{
    BlobRead, BlobSink, BlobStore, FailedAttempt, FailureCause, FollowerSender, IdleSlots,
    LockEntry, PartOpener, TransferError, WriteError,
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ByteStream, ErrorKind, HttpError, read_for_upload, stream_for_upload};
use landfall_model::{Descriptor, Digest, Limits, has_digest};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// How many parts of one blob are uploaded at the same time, while the next is received.
const CONCURRENT_PARTS: usize = 2;

/// A [`BucketStore`] as a [`BlobSink`].
pub(super) struct ObjectSink(pub BucketStore);

impl BlobSink for ObjectSink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        _in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        Box::pin(async move {
            let store = &self.0;
            let blob = &opener.part().descriptor;
            if store.known_size(&blob.digest) == Some(blob.size) {
                return Ok(false);
            }
            // a multipart upload of a small blob would cost three requests instead of one
            if blob.size <= MIN_PART_SIZE {
                write_single(store, blob, opener).await?;
                return Ok(true);
            }
            let begun = MultipartUpload::begin(store, blob).await;
            let Some(upload) = begun.map_err(TransferError::destination)? else {
                return Ok(false);
            };
            let upload = Arc::new(upload);
            let filled = tokio::select! {
                filled = upload.fill(opener) => filled,
                // a run that has lost its upload must stop: another run uploads the same parts
                lost = upload.send_heartbeats(store.timeouts()) => Err(lost),
            };
            if let Err(failed) = filled {
                upload.discard_if_unusable(&failed).await;
                return Err(failed);
            }
            Ok(true)
        })
    }
}

/// Writes a small blob, which is kept in memory until it is complete.
async fn write_single(
    store: &BucketStore,
    blob: &Descriptor,
    opener: &Arc<PartOpener>,
) -> Result<(), FailedAttempt> {
    let mut bytes = BytesMut::with_capacity(blob.size as usize);
    let hash = BlobHash::new(blob);
    let mut stream = open_for_upload(opener, 0).await?;
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| opener.failed(error))?;
        opener.count_received(piece.len());
        hash.check_end((bytes.len() + piece.len()) as u64)?;
        bytes.extend_from_slice(&piece);
    }
    Ok(store.put(blob, bytes.freeze()).await?)
}

/// An upload in parts that this run owns.
struct MultipartUpload {
    store: BucketStore,
    blob: Descriptor,
    /// The condemned object that is to be replaced.
    before: Option<BucketObject>,
    uploaded: Mutex<UploadedParts>,
}

/// The parts that were uploaded.
struct UploadedParts {
    own: OwnUploadRecord,
    /// Uploaded parts after a part that is still in progress: their identifiers, and the state of
    /// the hasher after each.
    out_of_order: BTreeMap<usize, (String, String)>,
}

impl MultipartUpload {
    /// Begins or resumes the upload. Returns `None` if another run completes it.
    async fn begin(
        store: &BucketStore,
        blob: &Descriptor,
    ) -> Result<Option<MultipartUpload>, HttpError> {
        let before = store.condemned_object(&blob.digest).await?;
        let timeouts = store.timeouts();
        let own = OwnUploadRecord::open(store.bucket(), blob, before.as_ref(), timeouts).await?;
        Ok(own.map(|own| MultipartUpload {
            store: store.clone(),
            blob: blob.clone(),
            before,
            uploaded: Mutex::new(UploadedParts {
                own,
                out_of_order: BTreeMap::new(),
            }),
        }))
    }

    async fn fill(self: &Arc<Self>, opener: &Arc<PartOpener>) -> Result<(), FailedAttempt> {
        let own = self.uploaded.lock().await.own.clone();
        let part_size = own.record.part_size;
        let first = own.record.parts.len();
        let mut hash = own.hash(&self.blob);
        let mut at = hash.offset;
        // dropping the set aborts the parts in progress
        let mut uploads = JoinSet::new();
        if at < self.blob.size {
            let mut stream = open_for_upload(opener, at).await?;
            let mut index = first;
            let mut part = BytesMut::with_capacity(part_size as usize);
            while let Some(piece) = stream.next().await {
                let mut piece = piece.map_err(|error| opener.failed(error))?;
                opener.count_received(piece.len());
                at += piece.len() as u64;
                hash.check_end(at)?;
                while !piece.is_empty() {
                    let fits = piece.len().min(part_size as usize - part.len());
                    part.extend_from_slice(&piece.split_to(fits));
                    if part.len() as u64 == part_size {
                        let full = std::mem::replace(
                            &mut part,
                            BytesMut::with_capacity(part_size as usize),
                        );
                        self.begin_part(&mut uploads, index, full.freeze(), &mut hash)
                            .await?;
                        index += 1;
                    }
                }
            }
            if !part.is_empty() {
                self.begin_part(&mut uploads, index, part.freeze(), &mut hash)
                    .await?;
            }
        }
        while let Some(done) = uploads.join_next().await {
            done.map_err(WriteError::from)??;
        }
        // before the upload is completed, because completion makes the object visible
        hash.check()?;
        let key = bucket_store::blob(&self.blob.digest);
        let own = self.uploaded.lock().await.own.clone();
        let bucket = self.store.bucket();
        let upload = &own.record.upload;
        let parts = own.record.parts.clone();
        let completed =
            bucket.complete_parts(&key, upload, parts, self.blob.size, self.before.as_ref());
        completed.await.map_err(upload_failed)?;
        // if this fails, the record names an upload that no longer exists, which does no harm
        let _ = own.remove(bucket, &self.blob).await;
        Ok(())
    }

    /// Renews the ownership of the upload. Returns when another run has taken over the upload.
    async fn send_heartbeats(&self, timeouts: StoreTimeouts) -> FailedAttempt {
        loop {
            tokio::time::sleep(timeouts.heartbeat).await;
            let mut uploaded = self.uploaded.lock().await;
            if let Err(error) = uploaded.own.save(self.store.bucket(), &self.blob).await
                && error.kind == ErrorKind::NotFound
            {
                return upload_failed(error);
            }
        }
    }

    /// Begins to upload a part. If too many parts are in progress, first waits until one of them
    /// ends.
    async fn begin_part(
        self: &Arc<Self>,
        uploads: &mut JoinSet<Result<(), FailedAttempt>>,
        index: usize,
        bytes: Bytes,
        hash: &mut BlobHash,
    ) -> Result<(), FailedAttempt> {
        // in the order of the blob, before the part is uploaded concurrently
        hash.update(&bytes);
        let state = encode_hash_state(&hash.hasher);
        if uploads.len() >= CONCURRENT_PARTS
            && let Some(done) = uploads.join_next().await
        {
            done.map_err(WriteError::from)??;
        }
        let this = self.clone();
        uploads.spawn(async move { this.put_part(index, bytes, state).await });
        Ok(())
    }

    /// Uploads a part, and records it once all parts before it are uploaded.
    async fn put_part(
        &self,
        index: usize,
        bytes: Bytes,
        state: String,
    ) -> Result<(), FailedAttempt> {
        // the lock is not held during the upload, because heartbeats need it
        let upload = self.uploaded.lock().await.own.record.upload.clone();
        let bucket = self.store.bucket();
        let name = bucket
            .put_part(
                &bucket_store::blob(&self.blob.digest),
                &upload,
                index,
                bytes,
            )
            .await
            .map_err(upload_failed)?;
        let mut uploaded = self.uploaded.lock().await;
        uploaded.out_of_order.insert(index, (name, state));
        let UploadedParts {
            own: OwnUploadRecord { record, .. },
            out_of_order,
        } = &mut *uploaded;
        let before = record.parts.len();
        // the record lists parts without a gap, because it contains only one state of the hasher:
        // the state after the last listed part
        while let Some((name, state)) = out_of_order.remove(&record.parts.len()) {
            record.parts.push(name);
            record.hash = state;
        }
        if record.parts.len() > before {
            uploaded
                .own
                .save(bucket, &self.blob)
                .await
                .map_err(upload_failed)?;
        }
        Ok(())
    }

    /// Aborts the upload if it cannot be resumed: after wrong bytes, or if it is gone.
    async fn discard_if_unusable(&self, failed: &FailedAttempt) {
        if matches!(
            failed.cause,
            FailureCause::Wrong | FailureCause::WrongOnce | FailureCause::Sink
        ) {
            let own = self.uploaded.lock().await.own.clone();
            // gc aborts the upload if this fails
            let _ = own.discard(self.store.bucket(), &self.blob).await;
        }
    }
}

/// Opens the source of the blob at the offset `at`. The requests to the source have slots of their
/// own: the source may be on the host of the object store, and the uploads may hold all slots of
/// that host.
async fn open_for_upload(opener: &Arc<PartOpener>, at: u64) -> Result<ByteStream, FailedAttempt> {
    Ok(stream_for_upload(
        read_for_upload(opener.unchecked_stream(at)).await?,
    ))
}

/// Turns an error of the object store into a failed attempt. After `NotFound`, the next attempt
/// begins a new upload, or waits for the run that has taken over this upload.
fn upload_failed(error: HttpError) -> FailedAttempt {
    let cause = if error.kind == ErrorKind::NotFound {
        FailureCause::Sink
    } else {
        FailureCause::Final
    };
    FailedAttempt::new(TransferError::destination(error), cause)
}

// The store in an object store as the destination of a pull.

/// After how many new blobs a list of them is written.
const LIST_INTERVAL: usize = 1000;

impl BlobStore for BucketStore {
    fn has_blob(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let this = self.clone();
        let digest = descriptor.digest.clone();
        if rehash {
            // otherwise the lists would be trusted, and no request would notice a missing object
            self.forget(&digest);
        }
        let size = block_on(async move { this.look_up(&digest).await }).map_err(refused)?;
        if size != Some(descriptor.size) || !rehash {
            return Ok(size == Some(descriptor.size));
        }
        let hashed = match self.open(&descriptor.digest, 0) {
            Ok(mut reader) => has_digest(&mut reader, &descriptor.digest),
            Err(error) => Err(std::io::Error::other(error)),
        };
        let is_intact = match hashed {
            Ok(is_intact) => is_intact,
            // wrong bytes; any other error does not show whether the blob is intact
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => false,
            Err(error) => return Err(WriteError::Refused(error.to_string())),
        };
        if !is_intact {
            self.distrust(&descriptor.digest);
        }
        Ok(is_intact)
    }

    fn needs_hashing(&self, _: &Descriptor, rehash: bool) -> bool {
        rehash
    }

    fn present_blobs(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, WriteError> {
        let this = self.clone();
        block_on(async move { this.find_present(wanted).await }).map_err(refused)
    }

    fn put(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
        let this = self.clone();
        let descriptor = descriptor.clone();
        let bytes = Bytes::copy_from_slice(bytes);
        let putting = async move {
            // computed blobs are the same in every run with the same lock, so most are present
            if this.look_up(&descriptor.digest).await? == Some(descriptor.size) {
                return Ok(Ok(()));
            }
            Ok(this.put(&descriptor, bytes).await)
        };
        block_on(putting).map_err(refused)?
    }

    fn sink(
        self: Arc<Self>,
        _: Limits,
        _: Option<IdleSlots>,
        _: Option<FollowerSender>,
    ) -> Arc<dyn BlobSink> {
        // no parallel ranges: the parts of an upload are hashed in order
        Arc::new(ObjectSink((*self).clone()))
    }

    fn mark_present(&self, descriptor: &Descriptor) {
        self.note_present(&descriptor.digest, descriptor.size);
        if self.unlisted_count() < LIST_INTERVAL {
            return;
        }
        let this = self.clone();
        // in the background, and its result is ignored: if it fails, the list is written at the
        // end, and without any list, blobs are looked up one by one
        drop(block_on(async move {
            tokio::spawn(async move { this.write_list(LIST_INTERVAL).await });
            Ok(())
        }));
    }

    fn distrust_lists(&self) {
        BucketStore::distrust_lists(self);
    }

    fn claim(
        &self,
        fingerprint: &Digest,
        lock: &str,
        wanted: BTreeSet<Digest>,
    ) -> Result<(), WriteError> {
        let this = self.clone();
        let fingerprint = fingerprint.clone();
        let text = Bytes::copy_from_slice(lock.as_bytes());
        let claiming = async move { this.claim(&fingerprint, text, &wanted).await };
        block_on(claiming).map_err(refused)
    }

    fn record_complete(&self, _: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError> {
        // there is no index.json: the names are in the locks, and shards would have to wait for
        // each other to write one object
        let this = self.clone();
        block_on(async move { this.write_list(1).await }).map_err(refused)
    }
}
