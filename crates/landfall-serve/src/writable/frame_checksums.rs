//! Checksums of pushed blobs, one for each MiB (a frame). They are computed while the bytes are
//! received and compared before the bytes are sent, so that clients never get bytes that changed on
//! disk.
//!
//! The digest proves the whole content when it is uploaded. After that, XXH64 is sufficient to
//! detect bit rot, and it costs next to nothing.

use landfall_content::{FileRun, FileRuns, FileStamp, RecentChecks};
use landfall_model::{Digest, Hasher};
use landfall_os::FileExt;
use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::sync::Arc;
use xxhash_rust::xxh64::Xxh64;

/// Size of a frame in bytes; the last one of a blob may be shorter.
pub(super) const FRAME: usize = 1 << 20;
/// The number of bytes that are read at once to compute a checksum.
const STEP: usize = 64 << 10;

/// Computes the frame checksums of a blob.
pub(super) struct FrameChecksums {
    hasher: Xxh64,
    /// The number of bytes of the current frame so far.
    filled: usize,
    done: Vec<u8>,
}

impl FrameChecksums {
    pub(super) fn new() -> FrameChecksums {
        FrameChecksums {
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
                self.end_frame();
            }
        }
    }

    fn end_frame(&mut self) {
        self.done
            .extend_from_slice(&self.hasher.digest().to_le_bytes());
        self.hasher.reset(0);
        self.filled = 0;
    }

    /// The checksums, eight bytes each.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_frame();
        }
        self.done
    }
}

/// Reads a file, or returns its runs. It compares the checksum of each frame before it returns any
/// byte of the frame, unless that was done a moment ago. It does not hold a frame in memory: each
/// frame is read once for its checksum, and once more for its bytes.
pub(super) struct CheckedReader {
    file: Arc<File>,
    file_stamp: FileStamp,
    sums: Vec<[u8; 8]>,
    checks: Arc<RecentChecks<FileStamp>>,
    /// The offset of the next byte.
    at: u64,
    /// The offset up to which the checksums were compared.
    checked: u64,
}

impl CheckedReader {
    /// Reads `file` from `offset` to the end.
    pub(super) fn new(
        file: File,
        sums: &[u8],
        checks: &Arc<RecentChecks<FileStamp>>,
        offset: u64,
    ) -> io::Result<CheckedReader> {
        Ok(CheckedReader {
            // the stamp of the open file, not of the path: the path may be replaced at any time
            file_stamp: FileStamp::of(&file)?,
            file: Arc::new(file),
            // a last incomplete checksum is ignored, so its frame counts as damaged
            sums: sums.as_chunks().0.to_vec(),
            checks: checks.clone(),
            at: offset,
            checked: 0,
        })
    }

    /// The rest of the file as runs, one for each frame.
    pub(super) fn runs(mut self) -> FileRuns {
        Box::new(iter::from_fn(move || {
            // the position stays at a damaged frame, so that no bytes after it are sent
            if let Err(error) = self.check_next() {
                return Some(Err(error));
            }
            let at = self.at;
            self.at = self.checked;
            (at < self.checked).then(|| {
                Ok(FileRun {
                    file: self.file.clone(),
                    at,
                    length: self.checked - at,
                })
            })
        }))
    }

    /// Whether the file has the digest. Fails if a frame does not have its checksum. Reads the file
    /// once.
    pub(super) fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let mut hasher = Hasher::new(digest.algorithm());
        // the checksums are compared too, because later reads rely only on them
        for frame in 0..self.file_stamp.size.div_ceil(FRAME as u64) {
            self.check_frame(frame, |piece| hasher.update(piece))?;
        }
        Ok(hasher.finish() == *digest)
    }

    /// Checks the frame that contains the next byte, unless that was done a moment ago.
    fn check_next(&mut self) -> io::Result<()> {
        let frame = self.at / FRAME as u64;
        self.checked = if self.checks.has(&self.file_stamp, frame as usize) {
            self.file_stamp.size.min((frame + 1) * FRAME as u64)
        } else {
            self.check_frame(frame, |_| {})?
        };
        Ok(())
    }

    /// Passes the content of a frame to `each` and compares its checksum. A frame without a
    /// checksum must be empty. Returns the offset of the end of the frame.
    fn check_frame(&self, frame: u64, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
        let start = frame * FRAME as u64;
        let end = start + FRAME as u64;
        let mut hasher = Xxh64::new(0);
        let mut at = start;
        let mut step = vec![0; STEP];
        while at < end {
            // a file that was truncated meanwhile fails the comparison below
            let count = self.file.read_at(&mut step, at)?;
            if count == 0 {
                break;
            }
            let count = count.min((end - at) as usize);
            hasher.update(&step[..count]);
            each(&step[..count]);
            at += count as u64;
        }
        let is_right = match self.sums.get(frame as usize) {
            Some(sum) => u64::from_le_bytes(*sum) == hasher.digest(),
            None => at == start,
        };
        // the checksum of a full last frame does not show that the file has grown
        let is_last = frame as usize + 1 >= self.sums.len();
        let has_grown = is_last && self.file.metadata()?.len() > at;
        if !is_right || has_grown {
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
            self.check_next()?;
        }
        // never reads beyond the compared frame, although the file has more bytes
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
        let mut sums = FrameChecksums::new();
        bytes.chunks(step).for_each(|piece| sums.update(piece));
        sums.finish()
    }

    /// Reads a blob, and returns the bytes and how reading ended. Checks that the file runs have
    /// the same bytes and end in the same way.
    fn read(bytes: &[u8], sums: &[u8], offset: u64) -> (Vec<u8>, io::Result<usize>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let reader = || {
            let checks = Arc::new(RecentChecks::default());
            CheckedReader::new(file.reopen().unwrap(), sums, &checks, offset).unwrap()
        };
        let mut out = Vec::new();
        let result = reader().read_to_end(&mut out);
        let mut sent = Vec::new();
        let mut kind = None;
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
    fn reading_from_an_offset_returns_what_was_written() {
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
    fn a_changed_frame_is_never_returned() {
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
