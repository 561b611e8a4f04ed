//! Checksums of pushed content, one for each MiB (a frame). They are computed while the bytes come in and compared
//! before the bytes are sent, so that a client never gets bytes that the disk has changed.
//!
//! The digest proves the whole content at its upload. After that XXH64 is enough to detect decay of the disk, and
//! costs next to nothing.

use std::io::{self, Read};
use xxhash_rust::xxh64::{Xxh64, xxh64};

/// Size of a frame in bytes; the last one of a blob may be shorter.
pub(super) const FRAME: usize = 1 << 20;

/// Computes the checksums of the bytes that pass.
pub(super) struct FrameSums {
    hasher: Xxh64,
    filled: usize,
    done: Vec<u8>,
}

impl FrameSums {
    pub(super) fn new() -> FrameSums {
        FrameSums { hasher: Xxh64::new(0), filled: 0, done: Vec::new() }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(FRAME - self.filled));
            self.hasher.update(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == FRAME {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.done.extend_from_slice(&self.hasher.digest().to_le_bytes());
        self.hasher.reset(0);
        self.filled = 0;
    }

    /// The checksums, eight bytes a frame.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.close();
        }
        self.done
    }
}

/// Reads frames, and checks each one before it hands out any byte of it.
pub(super) struct CheckedReader<R> {
    inner: R,
    sums: std::vec::IntoIter<[u8; 8]>,
    frame: Vec<u8>,
    at: usize,
}

impl<R: Read> CheckedReader<R> {
    /// Reads from `offset` to the end. `open` opens the content at the offset that it gets, the start of a frame.
    ///
    /// # Errors
    /// When `open` fails, or the frame is damaged.
    pub(super) fn open(
        sums: &[u8],
        offset: u64,
        open: impl FnOnce(u64) -> io::Result<R>,
    ) -> io::Result<CheckedReader<R>> {
        let first = offset / FRAME as u64;
        let skip = (offset % FRAME as u64) as usize;
        let sums: Vec<[u8; 8]> = sums.as_chunks().0.iter().skip(first as usize).copied().collect();
        let inner = open(first * FRAME as u64)?;
        let mut checked = CheckedReader { inner, sums: sums.into_iter(), frame: Vec::new(), at: 0 };
        if skip > 0 {
            checked.next()?;
            checked.at = skip.min(checked.frame.len());
        }
        Ok(checked)
    }

    fn next(&mut self) -> io::Result<()> {
        self.frame.clear();
        self.at = 0;
        (&mut self.inner).take(FRAME as u64).read_to_end(&mut self.frame)?;
        let expected = self.sums.next();
        let whole = match &expected {
            Some(sum) => u64::from_le_bytes(*sum) == xxh64(&self.frame, 0),
            None => self.frame.is_empty(),
        };
        if !whole {
            self.frame.clear();
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the bytes on disk have changed"));
        }
        Ok(())
    }
}

impl<R: Read> Read for CheckedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.frame.len() {
            self.next()?;
        }
        let count = out.len().min(self.frame.len() - self.at);
        out[..count].copy_from_slice(&self.frame[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn sums(bytes: &[u8], step: usize) -> Vec<u8> {
        let mut sums = FrameSums::new();
        bytes.chunks(step).for_each(|piece| sums.update(piece));
        sums.finish()
    }

    fn read(bytes: &[u8], sums: &[u8], offset: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let open = |at: u64| Ok(Cursor::new(&bytes[at as usize..]));
        CheckedReader::open(sums, offset, open)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn every_offset_reads_what_was_written() {
        let bytes: Vec<u8> = (0..2 * FRAME + 77).map(|at| (at * 31 / 7) as u8).collect();
        let sums = sums(&bytes, 100_003);
        assert_eq!(sums.len(), 24);
        for offset in [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, 2 * FRAME + 76, 2 * FRAME + 77] {
            assert_eq!(read(&bytes, &sums, offset as u64).unwrap(), &bytes[offset..], "{offset}");
        }
        assert_eq!(read(b"", b"", 0).unwrap(), b"");
    }

    #[test]
    fn a_changed_frame_is_never_handed_out() {
        let mut bytes = vec![7u8; 2 * FRAME];
        let sums = sums(&bytes, FRAME);
        bytes[FRAME + 5] ^= 1;
        let mut reader = CheckedReader::open(&sums, 0, |_| Ok(Cursor::new(&bytes))).unwrap();
        let mut out = Vec::new();
        let error = reader.read_to_end(&mut out).unwrap_err();
        assert_eq!((error.kind(), out.len()), (io::ErrorKind::InvalidData, FRAME));
        assert!(read(&bytes, &sums, FRAME as u64 + 9).is_err());
        assert!(read(&bytes[..FRAME], &sums, 0).is_err(), "a file cut short");
        assert!(read(&vec![7; 2 * FRAME + 1], &sums, 0).is_err(), "a file that has grown");
    }
}
