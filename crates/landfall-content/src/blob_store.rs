//! The traits for destinations of a pull: a store, or a bundle that is written straight from
//! upstream; and what a destination has of a blob.

use crate::{
    BlobRead, DiskSpace, FailedAttempt, FollowerSender, IdleSlots, LockEntry, PartOpener,
    WriteError,
};
use futures_util::future::BoxFuture;
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

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
    /// `slots` are idle. A store that can show a blob while it is being written sends a follower of
    /// the first write to `follower`; others drop the channel.
    fn sink(
        self: Arc<Self>,
        limits: Limits,
        slots: Option<IdleSlots>,
        follower: Option<FollowerSender>,
    ) -> Arc<dyn BlobSink>;

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

// The traits for destinations of blobs.

/// A destination of blobs: a store, a bundle that is being written, or a registry.
pub trait BlobSink: Send + Sync {
    /// Writes the blob of `opener`, or resumes the write of an earlier attempt or run. Reads only
    /// the missing bytes. Returns `false` if the blob is already present. It becomes visible only
    /// when its size and digest are right.
    ///
    /// With `in_order`, it is written from the first byte to the last over one connection. This is
    /// used after an attempt received wrong bytes, because ranges may have been the cause.
    ///
    /// # Errors
    /// If the source or the destination fails; the error names the side, and its cause decides
    /// whether another attempt is made.
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>>;
}

/// A range of bytes of a blob: the offset of the first byte, and the offset after the last byte.
pub type ByteRange = (u64, u64);

/// Sorts the ranges and joins those that touch or overlap. Empty ranges are dropped.
pub fn merge_ranges(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.retain(|(from, to)| from < to);
    ranges.sort_unstable();
    let mut merged: Vec<ByteRange> = Vec::new();
    for (from, to) in ranges {
        match merged.last_mut() {
            // `max`, because a range may be inside the previous one
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// Returns the length of the contiguous beginning that the ranges cover, and the ranges after it.
pub fn written_ranges(ranges: Vec<ByteRange>) -> (u64, Vec<ByteRange>) {
    let mut ranges = merge_ranges(ranges);
    let written = ranges.first().filter(|(from, _)| *from == 0);
    match written.map(|(_, to)| *to) {
        Some(written) => (written, ranges.split_off(1)),
        None => (0, ranges),
    }
}

/// A blob that is not complete yet, and can be written at any offset. All offsets are those of the
/// blob, not of the file that holds it.
pub trait PartialBlob: Debug + Send + Sync {
    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), WriteError>;

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), WriteError>;

    /// Called with bytes of the blob when they are hashed, in order and each byte once: bytes that
    /// were just written, and bytes that an earlier run or another connection wrote.
    ///
    /// # Errors
    /// If something that depends on them, such as a frame, cannot be written.
    fn hashed(&self, _bytes: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }

    /// Records that a range is written, so that another run can resume.
    ///
    /// # Errors
    /// If it cannot be recorded. This loses no data: another run fetches the range again.
    fn record(&self, range: ByteRange) -> std::io::Result<()>;

    /// Discards everything that is written.
    ///
    /// # Errors
    /// If it cannot be discarded.
    fn clear(&self) -> Result<(), WriteError>;

    /// Makes the blob visible, after its digest was verified.
    ///
    /// # Errors
    /// If it cannot be synced to disk or renamed.
    fn publish(&self) -> Result<(), WriteError>;
}
