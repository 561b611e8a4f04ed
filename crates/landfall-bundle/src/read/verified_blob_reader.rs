//! Reads a stored blob whose digest was already verified: directly from its raw blocks, from any
//! offset. Since disks decay, the checksum of each frame is compared before any byte of the frame
//! is returned, unless that was done a moment ago.

use super::OpenBundle;
use super::entry_reader::SequentialReader;
use crate::format::damage::Damage;
use crate::format::stored::{BLOCK, CHECKSUM, CHUNK, ReadAt, StoredReader, checksum, stored_len};
use landfall_content::FileRuns;
use landfall_model::{DigestCheckedReader, Hasher};
use std::io::{self, Read};
use std::iter;
use std::sync::Arc;
use xxhash_rust::xxh64::Xxh64;

/// Reads a stored blob whose digest was verified. It holds no frame in memory: it reads each frame
/// once for the checksum, and a second time for the content.
pub(super) struct VerifiedBlobReader {
    content: StoredReader<Arc<OpenBundle>>,
    entry_index: usize,
    /// The offset up to which the checksums were compared.
    checked: u64,
}

impl VerifiedBlobReader {
    /// Reads the entry with this index, starting at this offset of its content.
    pub(super) fn new(
        bundle: Arc<OpenBundle>,
        entry_index: usize,
        offset: u64,
    ) -> VerifiedBlobReader {
        let entry = bundle.entry(entry_index);
        let start = entry.content_offset();
        let size = entry.size;
        let content = StoredReader {
            source: bundle,
            start,
            at: offset.min(size),
            size,
        };
        VerifiedBlobReader {
            content,
            entry_index,
            checked: 0,
        }
    }

    /// The rest of the blob, as runs of the bundle's files.
    pub(super) fn runs(mut self) -> FileRuns {
        Box::new(iter::from_fn(move || {
            // the frame of a run is checked when the run is requested; after an error, the next
            // request checks the same frame again
            (self.content.at < self.content.size).then(|| {
                self.check()?;
                let (offset, run) = self.content.next_run();
                let run = self.content.source.volumes.run(offset, run)?;
                self.content.at += run.length;
                Ok(run)
            })
        }))
    }

    /// Compares the checksum of the frame that contains the next byte, unless it was compared.
    fn check(&mut self) -> io::Result<()> {
        if self.content.at < self.checked || self.content.at >= self.content.size {
            return Ok(());
        }
        let number = self.content.at / CHUNK as u64;
        if !self
            .content
            .source
            .checks
            .has(&self.entry_index, number as usize)
        {
            self.each_of_frame(number, |_| {})?;
        }
        self.checked = self.content.size.min((number + 1) * CHUNK as u64);
        Ok(())
    }

    /// Reads a frame, passes its content to `each`, and compares its checksum.
    fn each_of_frame(&self, number: u64, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let StoredReader {
            source: bundle,
            start,
            size,
            ..
        } = &self.content;
        let chunk = CHUNK as u64;
        let from = number * chunk;
        let to = *size.min(&((number + 1) * chunk));
        let mut blocks = StoredReader {
            source: bundle.clone(),
            start: *start,
            at: from,
            size: to,
        };
        let mut hasher = Xxh64::new(0);
        let mut block = vec![0; BLOCK / 2];
        loop {
            match blocks.read(&mut block)? {
                0 => break,
                count => {
                    hasher.update(&block[..count]);
                    each(&block[..count]);
                }
            }
        }
        let frame = start + number * stored_len(chunk);
        let sum = frame + stored_len(to - from) - CHECKSUM as u64;
        if bundle.volumes.bytes_at(sum, CHECKSUM)? != checksum(&hasher) {
            let why = "its bytes do not have the checksum of their frame";
            let damage = bundle.volumes.locate(Damage::new(
                &bundle.entry(self.entry_index).name,
                frame,
                why,
            ));
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                damage.to_string(),
            ));
        }
        // recorded only after the comparison, so that a failed comparison is repeated
        bundle.checks.add(self.entry_index, number as usize);
        Ok(())
    }

    /// Whether the blob has its digest. Reads it once.
    pub(super) fn is_intact(&self) -> io::Result<bool> {
        let digest = &self.content.source.entry(self.entry_index).digest;
        let mut hasher = Hasher::new(digest.algorithm());
        for number in 0..self.content.size.div_ceil(CHUNK as u64) {
            self.each_of_frame(number, |piece| hasher.update(piece))?;
        }
        Ok(hasher.finish() == *digest)
    }
}

impl Read for VerifiedBlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        // never beyond the compared frame, although the file has more bytes
        let left = self
            .checked
            .saturating_sub(self.content.at)
            .min(buffer.len() as u64) as usize;
        self.content.read(&mut buffer[..left])
    }
}

// Reads a complete stored blob directly from its raw blocks, for receivers that use the blob only
// after they have all of it. One digest over the blob replaces the hash of each frame, and the
// frames need not be copied.

/// Reads a stored blob from its beginning. If the digest is wrong, the last bytes are not returned.
pub(super) fn whole_blob(bundle: Arc<OpenBundle>, entry_index: usize) -> impl Read + Send {
    let entry = bundle.entry(entry_index);
    let digest = entry.digest.clone();
    let size = entry.size;
    let content = StoredReader {
        source: SequentialReader::new(Arc::clone(&bundle), entry.end()),
        start: entry.content_offset(),
        at: 0,
        size,
    };
    DigestCheckedReader::new(content, &digest, size, move |_| {
        let entry = bundle.entry(entry_index);
        let why = format!("its content does not have the digest {}", entry.digest);
        let damage = bundle
            .volumes
            .locate(Damage::new(&entry.name, entry.offset, why));
        io::Error::new(io::ErrorKind::InvalidData, damage.to_string())
    })
}

#[cfg(test)]
mod tests {
    use crate::Bundle;
    use crate::format::stored::CHUNK;
    use crate::testkit::sample::{forged_bundle, noise};
    use landfall_content::VerifiedRead;
    use landfall_model::Digest;
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::FileExt;

    #[test]
    fn reads_may_begin_at_any_offset_and_damaged_frames_return_nothing() {
        let content = noise(2 * CHUNK + 77);
        let (packed, _) = forged_bundle(&content, &content);
        let bundle = Bundle::open(&packed.path).unwrap();
        let digest = Digest::sha256(&content);
        let read = |bundle: &Bundle, offset: usize| {
            let mut bytes = Vec::new();
            let result = bundle
                .open_verified(&digest, offset as u64)
                .unwrap()
                .read_to_end(&mut bytes);
            (bytes, result.map_err(|error| error.kind()))
        };
        for offset in [
            0,
            1,
            CHUNK - 1,
            CHUNK,
            2 * CHUNK,
            content.len() - 1,
            content.len(),
        ] {
            let (bytes, result) = read(&bundle, offset);
            assert!(bytes == content[offset..] && result.is_ok(), "{offset}");
        }
        let file = std::fs::read(&packed.path).unwrap();
        let part = &content[CHUNK + 1000..CHUNK + 1032];
        let at = file.windows(32).position(|bytes| bytes == part).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&packed.path)
            .unwrap()
            .write_at(b"!", at as u64)
            .unwrap();
        let bundle = Bundle::open(&packed.path).unwrap();
        let (bytes, result) = read(&bundle, 0);
        assert_eq!((bytes.len(), result), (CHUNK, Err(ErrorKind::InvalidData)));
        assert!(read(&bundle, CHUNK + 5).0.is_empty());
        assert_eq!(read(&bundle, 2 * CHUNK).0, &content[2 * CHUNK..]);
    }
}
