//! Where parts are brought to: a store, or a bundle that is made straight from upstream.

use crate::content::Entry;
use crate::content::{BlobRead, StoreError, Writer};
use crate::model::{Descriptor, Digest};
use std::fmt::Debug;

/// Bytes of some content that are there: from the first up to the second offset.
pub type ByteRange = (u64, u64);

/// The ranges in order, those that touch as one.
pub fn merged(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.retain(|(from, to)| from < to);
    ranges.sort_unstable();
    let mut out: Vec<ByteRange> = Vec::new();
    for (from, to) in ranges {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

/// Where parts are brought to. It can be read from too, as far as content is there.
pub trait Sink: BlobRead {
    /// Whether the content is there and good, so that nothing need be fetched. With `rehash` it is hashed,
    /// whatever was recorded when it came.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn holds(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, StoreError>;

    /// Keeps a small piece of content that was not fetched.
    ///
    /// # Errors
    /// When it has another digest or size, or cannot be written.
    fn take(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), StoreError>;

    /// Begins to write content, or goes on with what an earlier run left. `None` means that it came to be
    /// there meanwhile. With `wide` what lies apart from the beginning is told too: content that several
    /// connections brought.
    ///
    /// # Errors
    /// When it cannot be written.
    fn begin(
        &self,
        descriptor: &Descriptor,
        wide: bool,
    ) -> Result<Option<(Writer, Vec<ByteRange>)>, StoreError>;

    /// The content with the lowest rank is fetched first: here, the biggest.
    fn rank(&self, descriptor: &Descriptor) -> u64 {
        u64::MAX - descriptor.size
    }

    /// This content has come.
    fn settled(&self, _digest: &Digest) {}

    /// These entries have all their parts.
    ///
    /// # Errors
    /// When that cannot be recorded.
    fn name(&self, whole: &mut dyn Iterator<Item = Entry>) -> Result<(), StoreError>;
}

/// Where one piece of content lies while it comes. Offsets are those of the content.
pub trait PartialBlob: Debug + Send + Sync {
    /// Reads what lies at an offset.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), StoreError>;

    /// Writes at an offset.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, bytes: &[u8], at: u64) -> Result<(), StoreError>;

    /// The next bytes, in order, that lie there by now, whether they were written or found.
    ///
    /// # Errors
    /// When what goes with them cannot be written.
    fn passed(&self, _bytes: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Records what was written, so that another run can go on with it.
    ///
    /// # Errors
    /// When it cannot be recorded. It is fetched again then, no more.
    fn record(&self, island: ByteRange) -> std::io::Result<()>;

    /// Throws everything away.
    ///
    /// # Errors
    /// When it cannot be thrown away.
    fn clear(&self) -> Result<(), StoreError>;

    /// All of the content lies there, and has its digest: now it counts.
    ///
    /// # Errors
    /// When it cannot be brought to disk.
    fn keep(&self) -> Result<(), StoreError>;
}
