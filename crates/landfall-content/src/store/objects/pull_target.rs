//! The store in an object store as the destination of a pull.

use super::bucket_store::{BucketStore, refused};
use super::claims::ClaimedLock;
use super::sink::ObjectSink;
use crate::bucket::block_on;
use crate::{BlobRead, BlobSink, BlobStore, IdleSlots, LockEntry, WriteError, has_digest};
use bytes::Bytes;
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

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

    fn sink(self: Arc<Self>, _: Limits, _: Option<IdleSlots>) -> Arc<dyn BlobSink> {
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
        let claiming = async move {
            let lock = ClaimedLock {
                fingerprint: &fingerprint,
                text,
            };
            this.claim(lock, &wanted).await
        };
        block_on(claiming).map_err(refused)
    }

    fn record_complete(&self, _: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError> {
        // there is no index.json: the names are in the locks, and shards would have to wait for
        // each other to write one object
        let this = self.clone();
        block_on(async move { this.write_list(1).await }).map_err(refused)
    }
}
