//! The trait for destinations of a pull: a store, or a bundle that is written straight from
//! upstream.

use super::follower::Follower;
use super::{BlobRead, BlobSink, DiskSpace, IdleSlots, LockEntry, WriteError};
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The destination of a pull. Blobs that it already has can be read from it.
pub trait BlobStore: BlobRead {
    /// Whether the store has the blob intact, so that it need not be fetched. With `rehash`, it is
    /// hashed even if an earlier verification is recorded.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn has_blob(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError>;

    /// Whether [`BlobStore::has_blob`] would read and hash the blob.
    fn needs_hashing(&self, descriptor: &Descriptor, rehash: bool) -> bool;

    /// Returns the `wanted` blobs that the store has, checked one by one. [`super::present_blobs`]
    /// uses all processors for the blobs that need hashing.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn present_blobs(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, WriteError> {
        let mut present = HashSet::new();
        for descriptor in wanted {
            if self.has_blob(&descriptor, false)? {
                present.insert(descriptor.digest);
            }
        }
        Ok(present)
    }

    /// Stores a small blob that is computed rather than fetched.
    ///
    /// # Errors
    /// If digest or size differ, or the store cannot be written.
    fn put(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError>;

    /// Returns this store as a sink. Big blobs may be written over several connections while
    /// `slots` are idle.
    fn sink(self: Arc<Self>, limits: Limits, slots: Option<IdleSlots>) -> Arc<dyn BlobSink>;

    /// Like [`BlobStore::sink`], for a single blob. If the store can show a blob while it is being
    /// written, it sends a follower of the first write to `follower`.
    fn sink_with_follower(
        self: Arc<Self>,
        limits: Limits,
        slots: IdleSlots,
        follower: oneshot::Sender<Follower>,
    ) -> Arc<dyn BlobSink> {
        // a closed channel tells the receiver to wait for the whole blob
        drop(follower);
        self.sink(limits, Some(slots))
    }

    /// Returns the space that these blobs need and the free space, or `None` if the store does not
    /// know it. Partly written blobs need less.
    ///
    /// # Errors
    /// If the file system cannot be queried.
    fn disk_space(
        &self,
        _wanted: &mut dyn Iterator<Item = (&Digest, u64)>,
    ) -> Result<Option<DiskSpace>, WriteError> {
        Ok(None)
    }

    /// Returns a sort key: blobs with lower ranks are fetched first. By default the biggest come
    /// first, so that no long transfer is left over at the end.
    fn fetch_rank(&self, descriptor: &Descriptor) -> u64 {
        // lower ranks come first, so the size is subtracted
        u64::MAX - descriptor.size
    }

    /// Tells the store that the transfer of a blob has succeeded.
    fn mark_present(&self, _descriptor: &Descriptor) {}

    /// Ignores lists of present blobs from now on and looks up each blob instead.
    fn distrust_lists(&self) {}

    /// Protects the blobs that a lock names from garbage collection until the claim expires. Call
    /// it before any other method: garbage collection may remove blobs that were found before the
    /// claim.
    ///
    /// # Errors
    /// If the claim cannot be written, or some of the blobs are being removed right now.
    fn claim(
        &self,
        _fingerprint: &Digest,
        _lock: &str,
        _wanted: BTreeSet<Digest>,
    ) -> Result<(), WriteError> {
        Ok(())
    }

    /// Records entries that have all their parts, for example in the `index.json` of the layout.
    ///
    /// # Errors
    /// If they cannot be recorded.
    fn record_complete(
        &self,
        entries: &mut dyn Iterator<Item = LockEntry>,
    ) -> Result<(), WriteError>;
}
