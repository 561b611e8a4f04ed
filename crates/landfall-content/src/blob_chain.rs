//! Combines several readers of content, such as a delta and its bases, and finds missing blobs.

use crate::{BlobRead, ContentError, LockEntry};
use landfall_model::{Descriptor, Digest, DigestCheckedReader, has_digest};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

/// Several readers of content as one. A blob is read from the first reader that has it; if that
/// copy turns out damaged, reading continues at the same byte in the next one.
pub struct BlobChain(pub Vec<Arc<dyn BlobRead>>);

impl BlobChain {
    /// Returns the readers that have the blob, each with the size of its copy.
    fn copies(&self, digest: &Digest) -> impl Iterator<Item = (u64, &Arc<dyn BlobRead>)> {
        let size = |blobs: &Arc<dyn BlobRead>| blobs.stat(digest).ok().flatten();
        self.0
            .iter()
            .filter_map(move |blobs| Some((size(blobs)?, blobs)))
    }
}

impl BlobRead for BlobChain {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        for blobs in &self.0 {
            if let Some(size) = blobs.stat(digest)? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    fn holds(&self, blob: &Descriptor) -> Result<bool, ContentError> {
        for blobs in &self.0 {
            if blobs.holds(blob)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let Some(first) = self.stat(digest)? else {
            return Err(ContentError::missing(digest));
        };
        let mut copies: Vec<(u64, &Arc<dyn BlobRead>)> = self.copies(digest).collect();
        let size = if copies.iter().all(|(size, _)| *size == first) {
            first
        } else {
            intact_size(&copies, digest).unwrap_or(first)
        };
        // a copy of another size is damaged, so it is not opened
        copies.retain(|(found, _)| *found == size);
        let mut reader = ChainReader {
            digest: digest.clone(),
            unopened: copies.into_iter().map(|(_, blobs)| blobs.clone()).collect(),
            current: Box::new(std::io::empty()),
            remaining: size.saturating_sub(offset),
            offset,
        };
        reader.open_next_copy()?;
        // the digest is over the whole blob, so a read from the middle cannot be verified
        if offset > 0 {
            return Ok(Box::new(reader));
        }
        // the beginning and the end may come from different copies, so the reader of a single copy
        // cannot verify the whole
        let checked = DigestCheckedReader::new(reader, digest, size, |reader: &ChainReader| {
            let damaged = ContentError::damaged(&reader.digest);
            io::Error::new(io::ErrorKind::InvalidData, damaged)
        });
        Ok(Box::new(checked))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        let mut copies = self.copies(digest);
        // without a second copy there is nothing to continue with, so the reader's own check
        // suffices and the blob need not be hashed here as well
        if let (Some((_, only)), None) = (copies.next(), copies.next()) {
            return only.open_whole(digest);
        }
        self.open(digest, 0)
    }

    fn open_copy(
        &self,
        digest: &Digest,
        number: usize,
    ) -> Result<Option<Box<dyn Read + Send>>, ContentError> {
        let copy = self.copies(digest).nth(number);
        copy.map(|(_, blobs)| blobs.open_whole(digest)).transpose()
    }
}

/// Returns the size of the first copy whose bytes have the digest, or `None` if no copy is intact.
fn intact_size(copies: &[(u64, &Arc<dyn BlobRead>)], digest: &Digest) -> Option<u64> {
    let is_intact = |blobs: &Arc<dyn BlobRead>| {
        let mut reader = blobs.open(digest, 0).map_err(io::Error::other)?;
        has_digest(&mut reader, digest)
    };
    let intact = copies
        .iter()
        .find(|(_, blobs)| is_intact(blobs).unwrap_or(false));
    intact.map(|(size, _)| *size)
}

/// Reads one of several copies of a blob. If the copy is damaged, continues with the next copy.
struct ChainReader {
    digest: Digest,
    /// The copies that were not opened yet.
    unopened: VecDeque<Arc<dyn BlobRead>>,
    current: Box<dyn Read + Send>,
    offset: u64,
    remaining: u64,
}

impl ChainReader {
    /// Opens the next copy that can be opened. If none can, returns the first error.
    fn open_next_copy(&mut self) -> Result<(), ContentError> {
        let mut first_error = None;
        while let Some(blobs) = self.unopened.pop_front() {
            match blobs.open(&self.digest, self.offset) {
                Ok(reader) => {
                    self.current = reader;
                    return Ok(());
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| ContentError::missing(&self.digest)))
    }

    /// Reads from the current copy. If the copy ends early, it is damaged, which is an error.
    fn read_current(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // a copy that is longer than the blob must not add bytes after its end
        let limit = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let length = buffer.len().min(limit);
        match self.current.read(&mut buffer[..length])? {
            0 if length > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

impl Read for ChainReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match self.read_current(buffer) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // if no copy is left, the damage is reported rather than the missing
                    // replacement
                    if self.open_next_copy().is_err() {
                        return Err(error);
                    }
                }
            }
        };
        self.offset += count as u64;
        self.remaining -= count as u64;
        Ok(count)
    }
}

/// A blob that is missing, and the entries that need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBlob {
    /// Digest, size and media type of the blob.
    pub blob: Descriptor,
    /// The names of the entries that need it.
    pub items: Vec<String>,
}

/// Returns the blobs that the entries need and that `blobs` lacks or has in another size, sorted by
/// digest.
///
/// # Errors
/// If `blobs` cannot be read.
pub fn missing_blobs<'a>(
    entries: impl IntoIterator<Item = &'a LockEntry>,
    blobs: &dyn BlobRead,
) -> Result<Vec<MissingBlob>, ContentError> {
    // `None` means that the blob is present; it is recorded, so that no digest is looked up twice
    let mut checked: BTreeMap<&Digest, Option<MissingBlob>> = BTreeMap::new();
    for entry in entries {
        for part in entry.parts.iter().filter(|part| part.is_stored()) {
            let blob = &part.descriptor;
            if !checked.contains_key(&blob.digest) {
                // by size alone: the bytes are verified when the blob is read
                let is_present = blobs.holds(blob)?;
                let missing = (!is_present).then(|| MissingBlob {
                    blob: blob.clone(),
                    items: Vec::new(),
                });
                checked.insert(&blob.digest, missing);
            }
            if let Some(Some(missing)) = checked.get_mut(&blob.digest)
                // an entry may have several parts with the same digest
                && missing.items.last() != Some(&entry.name)
            {
                missing.items.push(entry.name.clone());
            }
        }
    }
    Ok(checked.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBlobs;
    use crate::store::DiskStore;

    const CONTENT: &[u8] = b"hello world, once more";

    /// A copy whose first `good` bytes are right. After them, reading fails; if the copy
    /// `is_silent`, wrong bytes follow instead.
    struct DamagedCopy {
        good: usize,
        is_silent: bool,
    }

    impl BlobRead for DamagedCopy {
        fn stat(&self, _: &Digest) -> Result<Option<u64>, ContentError> {
            Ok(Some(CONTENT.len() as u64))
        }

        fn open(&self, _: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
            let offset = offset as usize;
            let good = self.good.max(offset);
            let rest: Box<dyn Read + Send> = if self.is_silent {
                Box::new(io::repeat(b'x').take((CONTENT.len() - good) as u64))
            } else {
                Box::new(BrokenReader)
            };
            Ok(Box::new(CONTENT[offset..good].chain(rest)))
        }
    }

    struct BrokenReader;

    impl Read for BrokenReader {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame is damaged",
            ))
        }
    }

    /// Reads a chain of these copies, followed by an intact one if `good`. Returns the bytes, and
    /// whether the read succeeded.
    fn read(copies: &[(usize, bool)], good: bool, offset: u64) -> (Vec<u8>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let digest = Digest::sha256(CONTENT);
        let mut readers: Vec<Arc<dyn BlobRead>> = Vec::new();
        for &(good, is_silent) in copies {
            readers.push(Arc::new(DamagedCopy { good, is_silent }));
        }
        if good {
            let disk = DiskStore::open(dir.path()).unwrap();
            let size = CONTENT.len() as u64;
            disk.put(&Descriptor::new(digest.clone(), size, "x/y"), CONTENT)
                .unwrap();
            readers.push(Arc::new(disk));
        }
        let chain = BlobChain(readers);
        let mut reader = match offset {
            0 => chain.open_whole(&digest).unwrap(),
            _ => chain.open(&digest, offset).unwrap(),
        };
        let mut bytes = Vec::new();
        let ended = reader.read_to_end(&mut bytes).is_ok();
        (bytes, ended)
    }

    #[test]
    fn reading_continues_in_the_next_copy_if_one_is_damaged() {
        for cut in 0..CONTENT.len() {
            assert_eq!(
                read(&[(cut, false)], true, 0),
                (CONTENT.to_vec(), true),
                "{cut}"
            );
            assert_eq!(
                read(&[(cut, false), (cut + 1, false)], true, 3),
                (CONTENT[3..].to_vec(), true),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_copy_of_another_size_does_not_hide_an_intact_one() {
        let digest = Digest::sha256(CONTENT);
        let held = |bytes: &'static [u8]| -> Arc<dyn BlobRead> {
            let blobs = BTreeMap::from([(digest.clone(), bytes.into())]);
            Arc::new(MemoryBlobs(blobs))
        };
        let longer = b"hello world, once more and more";
        let blob = Descriptor::new(digest.clone(), CONTENT.len() as u64, "x/y");
        for wrong in [&CONTENT[..5], &longer[..]] {
            let chain = BlobChain(vec![held(wrong), held(CONTENT)]);
            for offset in [0, 3] {
                let mut bytes = Vec::new();
                let mut reader = chain.open(&digest, offset).unwrap();
                reader.read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes, &CONTENT[offset as usize..]);
            }
            assert_eq!(chain.read(&blob).unwrap(), CONTENT);
            assert!(chain.holds(&blob).unwrap());
            let damaged = BlobChain(vec![held(wrong)]);
            assert!(damaged.read(&blob).is_err() && !damaged.holds(&blob).unwrap());
        }
    }

    #[test]
    fn copies_are_opened_one_by_one() {
        let copy = |good| -> Arc<dyn BlobRead> {
            let is_silent = true;
            Arc::new(DamagedCopy { good, is_silent })
        };
        let digest = Digest::sha256(CONTENT);
        let chain = BlobChain(vec![copy(3), Arc::new(BlobChain(Vec::new())), copy(5)]);
        for (number, good) in [(0, Some(3)), (1, Some(5)), (2, None)] {
            let copy = chain.open_copy(&digest, number).unwrap();
            let bytes = copy.map(|mut copy| {
                let mut bytes = Vec::new();
                copy.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let expected = good.map(|good| {
                let mut bytes = vec![b'x'; CONTENT.len()];
                bytes[..good].copy_from_slice(&CONTENT[..good]);
                bytes
            });
            assert_eq!(bytes, expected, "{number}");
        }
    }

    #[test]
    fn a_read_fails_if_all_copies_are_damaged_or_one_has_wrong_bytes() {
        let whole = CONTENT.len();
        assert_eq!(
            read(&[(5, false), (9, false)], false, 0),
            (CONTENT[..9].to_vec(), false)
        );
        let (bytes, ended) = read(&[(5, true), (whole, true)], false, 0);
        assert!(!ended && bytes.len() < whole, "{bytes:?}");
    }
}
