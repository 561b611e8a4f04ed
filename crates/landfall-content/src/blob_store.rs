//! What a pull asks of the place that content is brought to: a store, or a bundle that is made
//! straight from upstream.

use super::follower::Follower;
use super::{BlobRead, BlobSink, DiskSpace, IdleSlots, LockEntry, WriteError};
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A place that content is brought to. It can be read from too, as far as content is there.
pub trait BlobStore: BlobRead {
    /// Whether the content is there and good, so that nothing need be fetched. With `rehash` it is
    /// hashed, whatever was recorded when it came.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn holds(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError>;

    /// Whether [`BlobStore::holds`] reads and hashes content for its answer.
    fn must_hash(&self, descriptor: &Descriptor, rehash: bool) -> bool;

    /// Which of `wanted` are there, one after the other. [`super::present_blobs`] hashes what must
    /// be hashed before.
    ///
    /// # Errors
    /// As [`BlobStore::holds`].
    fn held(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, WriteError> {
        let mut here = HashSet::new();
        for descriptor in wanted {
            if self.holds(&descriptor, false)? {
                here.insert(descriptor.digest);
            }
        }
        Ok(here)
    }

    /// Keeps a small piece of content that is not fetched.
    ///
    /// # Errors
    /// When it has another digest or size, or cannot be written.
    fn take(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError>;

    /// It as a sink, which uses `slots` while they stand idle.
    fn sink(self: Arc<Self>, limits: Limits, slots: Option<IdleSlots>) -> Arc<dyn BlobSink>;

    /// The same for one piece of content, whose first write can be followed where the store can
    /// show it while it comes.
    fn followed(
        self: Arc<Self>,
        limits: Limits,
        slots: IdleSlots,
        by: oneshot::Sender<Follower>,
    ) -> Arc<dyn BlobSink> {
        drop(by);
        self.sink(limits, Some(slots))
    }

    /// The room for this content, where the store knows; what of it is here in part needs less.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn room(
        &self,
        _wanted: &mut dyn Iterator<Item = (&Digest, u64)>,
    ) -> Result<Option<DiskSpace>, WriteError> {
        Ok(None)
    }

    /// The content with the lowest rank is fetched first: here, the biggest.
    fn rank(&self, descriptor: &Descriptor) -> u64 {
        u64::MAX - descriptor.size
    }

    /// This content is here now.
    fn settled(&self, _descriptor: &Descriptor) {}

    /// What is recorded of content elsewhere than with it does not count from now on: it is looked
    /// for where it stands.
    fn doubt_lists(&self) {}

    /// A run wants what the lock with this fingerprint and text names: nobody may remove that from
    /// now on. It comes before anything is looked for.
    ///
    /// # Errors
    /// When that cannot be recorded, or some of it is being removed.
    fn claim(
        &self,
        _fingerprint: &Digest,
        _lock: &str,
        _wanted: BTreeSet<Digest>,
    ) -> Result<(), WriteError> {
        Ok(())
    }

    /// These entries have all their parts.
    ///
    /// # Errors
    /// When that cannot be recorded.
    fn name(&self, whole: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError>;
}
