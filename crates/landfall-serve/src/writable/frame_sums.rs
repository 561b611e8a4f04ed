//! Checksums of pushed content, one for each MiB (a frame). They are computed while the bytes come
//! in and compared before the bytes are sent, so that a client never gets bytes that the disk has
//! changed.
//!
//! The digest proves the whole content at its upload. After that XXH64 is enough to detect decay of
//! the disk, and costs next to nothing.

use landfall_content::{FileRun, FileRuns, FileStamp, RecentChecks};
use landfall_model::{Digest, Hasher};
use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use xxhash_rust::xxh64::Xxh64;

/// Size of a frame in bytes; the last one of a blob may be shorter.
pub(super) const FRAME: usize = 1 << 20;
/// How many bytes are read at once for a checksum.
const STEP: usize = 64 << 10;

/// Computes the checksums of the bytes that pass.
pub(super) struct FrameSums {
    hasher: Xxh64,
    filled: usize,
    done: Vec<u8>,
}

impl FrameSums {
    pub(super) fn new() -> FrameSums {
        FrameSums {
            hasher: Xxh64::new(0),
            filled: 0,
            done: Vec::new(),
        }
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
        self.done
            .extend_from_slice(&self.hasher.digest().to_le_bytes());
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

/// Reads a file, or names its runs, and checks each frame before it hands out any byte of it,
/// unless that was done a moment ago. It holds no frame: one is read for its checksum, and then
/// once more.
pub(super) struct CheckedReader {
    file: Arc<File>,
    file_stamp: FileStamp,
    sums: Vec<[u8; 8]>,
    checks: Arc<RecentChecks<FileStamp>>,
    at: u64,
    /// Up to where the checksums were compared.
    checked: u64,
}

impl CheckedReader {
    /// Reads `file` from `offset` to the end.
    ///
    /// # Errors
    /// When the system says nothing of the file.
    pub(super) fn new(
        file: File,
        sums: &[u8],
        checks: &Arc<RecentChecks<FileStamp>>,
        offset: u64,
    ) -> io::Result<CheckedReader> {
        let file_stamp = FileStamp::of(&file.metadata()?);
        let (sums, checks) = (sums.as_chunks().0.to_vec(), checks.clone());
        Ok(CheckedReader {
            file: Arc::new(file),
            file_stamp,
            sums,
            checks,
            at: offset,
            checked: 0,
        })
    }

    /// What is left, as runs of the file: one for each frame.
    pub(super) fn runs(mut self) -> FileRuns {
        Box::new(iter::from_fn(move || {
            if let Err(error) = self.check() {
                return Some(Err(error));
            }
            let (at, end) = (self.at, self.checked);
            self.at = end;
            (at < end).then(|| {
                Ok(FileRun {
                    file: self.file.clone(),
                    at,
                    length: end - at,
                })
            })
        }))
    }

    /// Whether the file has this digest, and its frames their checksums. It is read once.
    pub(super) fn is_sound(&self, digest: &Digest) -> io::Result<bool> {
        let mut hasher = Hasher::new(digest.algorithm());
        for frame in 0..self.file_stamp.size.div_ceil(FRAME as u64) {
            self.each_of_frame(frame, |piece| hasher.update(piece))?;
        }
        Ok(hasher.finish() == *digest)
    }

    /// Compares the checksum of the frame with the byte that is read next, unless that was done a
    /// moment ago.
    fn check(&mut self) -> io::Result<()> {
        let frame = self.at / FRAME as u64;
        self.checked = match self.checks.has(&self.file_stamp, frame as usize) {
            true => self.file_stamp.size.min((frame + 1) * FRAME as u64),
            false => self.each_of_frame(frame, |_| {})?,
        };
        Ok(())
    }

    /// Reads a frame: hands its content to `each`, and compares its checksum. No frame must be
    /// where there is no checksum. Returns where it ends.
    fn each_of_frame(&self, frame: u64, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
        let size = FRAME as u64;
        let (mut hasher, mut at, mut step) = (Xxh64::new(0), frame * size, vec![0; STEP]);
        while at < (frame + 1) * size {
            let count = self.file.read_at(&mut step, at)?;
            if count == 0 {
                break;
            }
            let count = count.min(((frame + 1) * size - at) as usize);
            hasher.update(&step[..count]);
            each(&step[..count]);
            at += count as u64;
        }
        let sum = self.sums.get(frame as usize);
        let is_right = sum.map_or(at == frame * size, |sum| {
            u64::from_le_bytes(*sum) == hasher.digest()
        });
        // a last frame that is full ends with the file
        let is_end = frame as usize + 1 < self.sums.len() || self.file.metadata()?.len() <= at;
        if !is_right || !is_end {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the bytes on disk have changed",
            ));
        }
        self.checks.add(self.file_stamp, frame as usize);
        Ok(at)
    }
}

impl Read for CheckedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.checked {
            self.check()?;
        }
        let want = self.checked.saturating_sub(self.at).min(out.len() as u64) as usize;
        let count = self.file.read_at(&mut out[..want], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sums(bytes: &[u8], step: usize) -> Vec<u8> {
        let mut sums = FrameSums::new();
        bytes.chunks(step).for_each(|piece| sums.update(piece));
        sums.finish()
    }

    /// What is read, and how that ends; the runs have the same bytes and end the same way.
    fn read(bytes: &[u8], sums: &[u8], offset: u64) -> (Vec<u8>, io::Result<usize>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let reader = || {
            let checks = Arc::new(RecentChecks::default());
            CheckedReader::new(file.reopen().unwrap(), sums, &checks, offset).unwrap()
        };
        let mut out = Vec::new();
        let result = reader().read_to_end(&mut out);
        let (mut sent, mut kind) = (Vec::new(), None);
        for run in reader().runs() {
            let run = match run {
                Ok(run) => run,
                Err(error) => {
                    kind = Some(error.kind());
                    break;
                }
            };
            let mut piece = vec![0; run.length as usize];
            run.file.read_exact_at(&mut piece, run.at).unwrap();
            sent.extend(piece);
        }
        assert!(sent == out, "{} and {} bytes", sent.len(), out.len());
        assert_eq!(kind, result.as_ref().err().map(io::Error::kind));
        (out, result)
    }

    #[test]
    fn every_offset_reads_what_was_written() {
        let bytes: Vec<u8> = (0..2 * FRAME + 77).map(|at| (at * 31 / 7) as u8).collect();
        let sums = sums(&bytes, 100_003);
        assert_eq!(sums.len(), 24);
        for offset in [
            0,
            1,
            FRAME - 1,
            FRAME,
            FRAME + 1,
            2 * FRAME,
            2 * FRAME + 76,
            2 * FRAME + 77,
        ] {
            let (read, result) = read(&bytes, &sums, offset as u64);
            assert!(result.is_ok() && read == bytes[offset..], "{offset}");
        }
        assert_eq!(read(b"", b"", 0).0, b"");
    }

    #[test]
    fn a_changed_frame_is_never_handed_out() {
        let mut bytes = vec![7u8; 2 * FRAME];
        let sums = sums(&bytes, FRAME);
        bytes[FRAME + 5] ^= 1;
        let (out, result) = read(&bytes, &sums, 0);
        assert_eq!(
            (result.unwrap_err().kind(), out.len()),
            (io::ErrorKind::InvalidData, FRAME)
        );
        assert!(read(&bytes, &sums, FRAME as u64 + 9).1.is_err());
        assert!(
            read(&bytes[..FRAME], &sums, 0).1.is_err(),
            "a file cut short"
        );
        assert!(
            read(&vec![7; 2 * FRAME + 1], &sums, 0).1.is_err(),
            "a file that has grown"
        );
    }
}
