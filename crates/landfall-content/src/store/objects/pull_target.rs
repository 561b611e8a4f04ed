//! The store as the place that a pull brings content to.

use super::bucket_store::{BucketStore, refused};
use super::sink::ObjectSink;
use crate::bucket::block_on;
use crate::{BlobRead, BlobSink, BlobStore, IdleSlots, LockEntry, WriteError, has_digest};
use bytes::Bytes;
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Content after which a list of it is written.
const LIST_EVERY: usize = 1000;

impl BlobStore for BucketStore {
    fn has_blob(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let (this, digest) = (self.clone(), descriptor.digest.clone());
        if rehash {
            self.forget(&digest);
        }
        let size = block_on(async move { this.look(&digest).await }).map_err(refused)?;
        if size != Some(descriptor.size) || !rehash {
            return Ok(size == Some(descriptor.size));
        }
        let hashed = match self.open(&descriptor.digest, 0) {
            Ok(mut reader) => has_digest(&mut reader, &descriptor.digest),
            Err(error) => Err(std::io::Error::other(error)),
        };
        let is_good = match hashed {
            Ok(is_good) => is_good,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => false,
            Err(error) => return Err(WriteError::Refused(error.to_string())),
        };
        if !is_good {
            // to be written anew, over what stands there
            self.distrust(&descriptor.digest);
        }
        Ok(is_good)
    }

    fn needs_hashing(&self, _: &Descriptor, rehash: bool) -> bool {
        rehash
    }

    fn present_blobs(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, WriteError> {
        let this = self.clone();
        block_on(async move { this.find(wanted).await }).map_err(refused)
    }

    fn put(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
        let (this, descriptor, bytes) = (
            self.clone(),
            descriptor.clone(),
            Bytes::copy_from_slice(bytes),
        );
        let taking = async move {
            Ok(
                match this.look(&descriptor.digest).await? == Some(descriptor.size) {
                    true => Ok(()),
                    false => this.put(&descriptor, bytes).await,
                },
            )
        };
        block_on(taking).map_err(refused)?
    }

    fn sink(self: Arc<Self>, _: Limits, _: Option<IdleSlots>) -> Arc<dyn BlobSink> {
        Arc::new(ObjectSink((*self).clone()))
    }

    fn mark_present(&self, descriptor: &Descriptor) {
        self.note(&descriptor.digest, descriptor.size);
        if self.unlisted() < LIST_EVERY {
            return;
        }
        let this = self.clone();
        // a list that cannot be written now is written at the end, or not: then each is looked for
        drop(block_on(async move {
            tokio::spawn(async move { this.list(LIST_EVERY).await });
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
        let (this, fingerprint) = (self.clone(), fingerprint.clone());
        let lock = Bytes::copy_from_slice(lock.as_bytes());
        block_on(async move { this.claim((&fingerprint, lock), &wanted).await }).map_err(refused)
    }

    fn record_complete(&self, _: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError> {
        // names are in locks: one object that all shards write would be what they wait for
        let this = self.clone();
        block_on(async move { this.list(1).await }).map_err(refused)
    }
}
