//! The trait for a blob that is not complete yet, and can be written at any offset.

use super::WriteError;
use std::fmt::Debug;

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
