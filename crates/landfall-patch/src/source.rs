//! Plain bytes that can be read at any offset.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Plain bytes that can be read at any offset, from several threads.
pub trait PlainSource: Send + Sync {
    /// The number of plain bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If the source ends before `buffer` is full, or cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

/// A file with its length.
impl PlainSource for (File, u64) {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

impl PlainSource for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let source = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..)?.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

/// Reads `length` bytes at `offset`. The caller bounds `length`.
pub(crate) fn read_vec(
    source: &dyn PlainSource,
    offset: u64,
    length: usize,
) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    source.read_at(&mut bytes, offset)?;
    Ok(bytes)
}
