//! The bytes of a pack, read at any offset.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The bytes of a pack, read at any offset.
pub trait PackBytes: Send + Sync {
    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If the bytes cannot be read, or the pack ends before the buffer is full.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// The length of the pack in bytes.
    ///
    /// # Errors
    /// If it cannot be determined.
    fn length(&self) -> io::Result<u64>;
}

impl PackBytes for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

impl PackBytes for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let rest = self.get(offset as usize..).unwrap_or_default();
        let found = rest
            .get(..buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Reads the bytes of a pack one after another.
pub(super) struct SequentialBytes<'a> {
    bytes: &'a dyn PackBytes,
    range: Range<u64>,
}

impl<'a> SequentialBytes<'a> {
    /// Reads the bytes in `range`.
    pub(super) fn new(bytes: &'a dyn PackBytes, range: Range<u64>) -> SequentialBytes<'a> {
        SequentialBytes { bytes, range }
    }
}

impl Read for SequentialBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.range.end - self.range.start;
        let count = rest.min(buffer.len() as u64) as usize;
        self.bytes
            .read_exact_at(&mut buffer[..count], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}
