//! The store as a sink. Small content is one object, written when it is whole; big content is
//! uploaded in parts, and becomes an object when its digest was checked.

use super::bucket_store::{BucketStore, refused};
use super::keys;
use super::store_timeouts::StoreTimeouts;
use super::upload_record::{OwnRecord, PART, hash_text};
use crate::bucket::BucketObject;
use crate::{
    BlobSink, BlobWrite, FailedAttempt, FailureCause, PartOpener, TransferError, WriteError,
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ByteStream, ErrorKind, HttpError, read_for_upload, stream_for_upload};
use landfall_model::{Descriptor, Hasher};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Parts of one blob that are uploaded at once, while the next is received.
const PARTS_AT_ONCE: usize = 2;

/// The store as a [`BlobSink`].
pub(super) struct ObjectSink(pub BucketStore);

impl BlobSink for ObjectSink {
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        _in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>> {
        Box::pin(async move {
            let (store, blob) = (self.0.clone(), blob.clone());
            if store.known_size(&blob.digest) == Some(blob.size) {
                return Ok(None);
            }
            if blob.size <= PART {
                return Ok(Some(Box::new(Small { store, blob }) as Box<dyn BlobWrite>));
            }
            let opened = async {
                let before = store.condemned(&blob.digest).await?;
                let patience = store.patience();
                let own = OwnRecord::open(store.bucket(), &blob, before.as_ref(), patience).await?;
                Ok(own.map(|own| (own, before)))
            };
            let Some((own, before)) = opened.await.map_err(TransferError::destination)? else {
                return Ok(None);
            };
            Ok(Some(Box::new(Big {
                store,
                blob,
                own,
                before,
            }) as Box<dyn BlobWrite>))
        })
    }
}

/// Content that is held in memory until it is whole.
struct Small {
    store: BucketStore,
    blob: Descriptor,
}

impl BlobWrite for Small {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let mut bytes = BytesMut::with_capacity(self.blob.size as usize);
            let mut stream = open_for_upload(opener, 0).await?;
            while let Some(piece) = stream.next().await {
                let piece = piece.map_err(|error| opener.failed(error))?;
                opener.count_received(piece.len());
                if (bytes.len() + piece.len()) as u64 > self.blob.size {
                    return Err(too_long(&self.blob, bytes.len() + piece.len()).into());
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(self.store.put(&self.blob, bytes.freeze()).await?)
        })
    }
}

fn too_long(blob: &Descriptor, found: usize) -> WriteError {
    WriteError::Size {
        wanted: blob.digest.clone(),
        size: blob.size,
        found: found as u64,
    }
}

/// Content that is uploaded in parts.
struct Big {
    store: BucketStore,
    blob: Descriptor,
    own: OwnRecord,
    /// What stands there, and is to be replaced.
    before: Option<BucketObject>,
}

impl BlobWrite for Big {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let Big {
                store,
                blob,
                own,
                before,
            } = *self;
            let patience = store.patience();
            let came = Mutex::new(Came {
                own,
                later: BTreeMap::new(),
            });
            let upload = Arc::new(Upload {
                store,
                blob,
                before,
                came,
            });
            let filled = tokio::select! {
                filled = upload.fill(opener) => filled,
                lost = upload.beat(patience) => Err(lost),
            };
            match filled {
                Ok(()) => Ok(()),
                Err(failed) => Err(upload.after(failed).await),
            }
        })
    }
}

/// An upload under way.
struct Upload {
    store: BucketStore,
    blob: Descriptor,
    before: Option<BucketObject>,
    came: Mutex<Came>,
}

/// What came of an upload.
struct Came {
    own: OwnRecord,
    /// Parts that came before one that they follow: their names, and the hash after each.
    later: BTreeMap<usize, (String, String)>,
}

impl Upload {
    async fn fill(self: &Arc<Self>, opener: &Arc<PartOpener>) -> Result<(), FailedAttempt> {
        let own = self.came.lock().await.own.clone();
        let (part_size, first) = (own.record.part_size, own.record.parts.len());
        let mut hasher = own
            .hasher(&self.blob)
            .unwrap_or_else(|| Hasher::new(self.blob.digest.algorithm()));
        let mut at = first as u64 * part_size;
        let mut under_way = JoinSet::new();
        if at < self.blob.size {
            let mut stream = open_for_upload(opener, at).await?;
            let (mut index, mut part) = (first, BytesMut::with_capacity(part_size as usize));
            while let Some(piece) = stream.next().await {
                let mut piece = piece.map_err(|error| opener.failed(error))?;
                opener.count_received(piece.len());
                at += piece.len() as u64;
                if at > self.blob.size {
                    return Err(too_long(&self.blob, at as usize).into());
                }
                while !piece.is_empty() {
                    let fits = piece.len().min(part_size as usize - part.len());
                    part.extend_from_slice(&piece.split_to(fits));
                    if part.len() as u64 == part_size {
                        let full = std::mem::replace(
                            &mut part,
                            BytesMut::with_capacity(part_size as usize),
                        );
                        self.send(&mut under_way, index, full.freeze(), &mut hasher)
                            .await?;
                        index += 1;
                    }
                }
            }
            if !part.is_empty() {
                self.send(&mut under_way, index, part.freeze(), &mut hasher)
                    .await?;
            }
        }
        while let Some(done) = under_way.join_next().await {
            sent(done)?;
        }
        let found = hasher.finish();
        if found != self.blob.digest {
            return Err(WriteError::Digest {
                wanted: self.blob.digest.clone(),
                found,
            }
            .into());
        }
        let (key, own) = (
            keys::blob(&self.blob.digest),
            self.came.lock().await.own.clone(),
        );
        let bucket = self.store.bucket();
        let (upload, parts) = (&own.record.upload, own.record.parts.clone());
        let completed =
            bucket.complete_parts(&key, upload, parts, self.blob.size, self.before.as_ref());
        completed.await.map_err(failed)?;
        // a record that stays is that of an upload that is gone: it does no harm
        let _ = own.remove(bucket, &self.blob).await;
        Ok(())
    }

    /// Says again and again that this run goes on with the upload. Ends when another one does.
    async fn beat(&self, patience: StoreTimeouts) -> FailedAttempt {
        loop {
            tokio::time::sleep(patience.beat).await;
            let mut came = self.came.lock().await;
            if let Err(error) = came.own.save(self.store.bucket(), &self.blob).await
                && error.kind == ErrorKind::NotFound
            {
                return failed(error);
            }
        }
    }

    /// Sends a part beside others that are under way.
    async fn send(
        self: &Arc<Self>,
        under_way: &mut JoinSet<Result<(), FailedAttempt>>,
        index: usize,
        bytes: Bytes,
        hasher: &mut Hasher,
    ) -> Result<(), FailedAttempt> {
        hasher.update(&bytes);
        let state = hash_text(hasher);
        if under_way.len() >= PARTS_AT_ONCE
            && let Some(done) = under_way.join_next().await
        {
            sent(done)?;
        }
        let this = self.clone();
        under_way.spawn(async move { this.put(index, bytes, state).await });
        Ok(())
    }

    /// Uploads a part, and records it when all before it are there.
    async fn put(&self, index: usize, bytes: Bytes, state: String) -> Result<(), FailedAttempt> {
        let upload = self.came.lock().await.own.record.upload.clone();
        let bucket = self.store.bucket();
        let name = bucket
            .put_part(&keys::blob(&self.blob.digest), &upload, index, bytes)
            .await
            .map_err(failed)?;
        let mut came = self.came.lock().await;
        came.later.insert(index, (name, state));
        let Came {
            own: OwnRecord { record, .. },
            later,
        } = &mut *came;
        let before = record.parts.len();
        while let Some((name, state)) = later.remove(&record.parts.len()) {
            record.parts.push(name);
            record.hash = state;
        }
        if record.parts.len() > before {
            came.own.save(bucket, &self.blob).await.map_err(failed)?;
        }
        Ok(())
    }

    /// What is done about a failure: wrong bytes, and an upload that is gone, are begun anew.
    async fn after(&self, failed: FailedAttempt) -> FailedAttempt {
        let is_wrong = matches!(failed.cause, FailureCause::Wrong | FailureCause::WrongOnce);
        let is_gone = failed.cause == FailureCause::Sink;
        if is_wrong || is_gone {
            let own = self.came.lock().await.own.clone();
            // what cannot be given up now is given up by gc
            let _ = own.discard(self.store.bucket(), &self.blob).await;
        }
        failed
    }
}

/// The part from `at` on. Its host may be that of the object store, whose slots the uploads need.
async fn open_for_upload(opener: &Arc<PartOpener>, at: u64) -> Result<ByteStream, FailedAttempt> {
    Ok(stream_for_upload(
        read_for_upload(opener.unchecked_stream(at)).await?,
    ))
}

/// A failure of the object store. An upload that is not there any more, or cannot be completed, is
/// begun anew; one that another run goes on with is waited for.
fn failed(error: HttpError) -> FailedAttempt {
    let cause = if error.kind == ErrorKind::NotFound {
        FailureCause::Sink
    } else {
        FailureCause::Final
    };
    FailedAttempt::new(TransferError::destination(error), cause)
}

fn sent(
    done: Result<Result<(), FailedAttempt>, tokio::task::JoinError>,
) -> Result<(), FailedAttempt> {
    let ended = |error: tokio::task::JoinError| {
        FailedAttempt::from(refused(HttpError::new(ErrorKind::Local, error.to_string())))
    };
    done.map_err(ended)?
}
