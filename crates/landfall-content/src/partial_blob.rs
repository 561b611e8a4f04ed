//! Content that is not whole yet, and can be written at any offset.

use super::WriteError;
use std::fmt::Debug;

/// Bytes of some content that are there: from the first up to the second offset.
pub type ByteRange = (u64, u64);

/// The ranges in order, those that touch as one.
pub fn merge_ranges(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
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

/// Content that is not whole yet, written at any offset. Offsets are those of the content.
pub trait PartialBlob: Debug + Send + Sync {
    /// Reads what lies at an offset.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError>;

    /// Writes at an offset.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError>;

    /// Sees the content's bytes in order, once each: those that were written, and those that were
    /// found.
    ///
    /// # Errors
    /// When what belongs to them cannot be written.
    fn passed(&self, _bytes: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }

    /// Records what was written, so that another run can resume.
    ///
    /// # Errors
    /// When it cannot be recorded. Another run fetches it again then.
    fn record(&self, range: ByteRange) -> std::io::Result<()>;

    /// Discards everything.
    ///
    /// # Errors
    /// When it cannot be discarded.
    fn clear(&self) -> Result<(), WriteError>;

    /// The content is whole and has its digest: it counts from now on.
    ///
    /// # Errors
    /// When it cannot be brought to disk.
    fn keep(&self) -> Result<(), WriteError>;
}
