//! Several readers of content as one, such as a delta and its bases; and what none of them has of
//! some entries.

use crate::LockEntry;
use crate::{BlobRead, ContentError};
use landfall_model::{Descriptor, Digest, Hasher};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

/// Several readers of content as one: each digest is read from the first that has it. Where that
/// turns out damaged, the next goes on at that byte.
pub struct BlobChain(pub Vec<Arc<dyn BlobRead>>);

impl BlobRead for BlobChain {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        for blobs in &self.0 {
            if let Some(size) = blobs.stat(digest)? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing {
            digest: digest.clone(),
        };
        let size = self.stat(digest)?.ok_or_else(missing)?;
        let mut copies: VecDeque<_> = self.0.iter().cloned().collect();
        copies.retain(|blobs| blobs.stat(digest).is_ok_and(|found| found == Some(size)));
        let hasher = (offset == 0).then(|| Hasher::new(digest.algorithm()));
        let mut reader = ChainReader {
            digest: digest.clone(),
            copies,
            reader: Box::new(std::io::empty()),
            left: size.saturating_sub(offset),
            at: offset,
            hasher,
        };
        reader.next_copy().unwrap_or_else(|| Err(missing()))?;
        Ok(Box::new(reader))
    }

    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        let mut holders = self
            .0
            .iter()
            .filter(|blobs| blobs.stat(digest).is_ok_and(|size| size.is_some()));
        match (holders.next(), holders.next()) {
            // what no other can mend need not be hashed here too
            (Some(only), None) => only.open_whole(digest),
            _ => self.open(digest, 0),
        }
    }
}

/// Reads one of several copies. Where it is damaged, the next one is read from that byte on. What
/// begins at byte 0 is hashed as it leaves, since its beginning and its end may be of different
/// copies: the last piece is held back if the digest is wrong.
struct ChainReader {
    digest: Digest,
    /// Those that were not opened yet.
    copies: VecDeque<Arc<dyn BlobRead>>,
    reader: Box<dyn Read + Send>,
    at: u64,
    left: u64,
    hasher: Option<Hasher>,
}

impl ChainReader {
    /// Opens the next copy that can be opened; `None` where there is none left.
    fn next_copy(&mut self) -> Option<Result<(), ContentError>> {
        let mut first = None;
        while let Some(blobs) = self.copies.pop_front() {
            match blobs.open(&self.digest, self.at) {
                Ok(reader) => {
                    self.reader = reader;
                    return Some(Ok(()));
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        first.map(Err)
    }

    /// The next bytes of the copy that is read. A copy that ends early is a damaged one.
    fn piece(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        match self.reader.read(&mut buffer[..length])? {
            0 if length > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

impl Read for ChainReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match self.piece(buffer) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // the first that is wrong is told, as the others only help
                Err(error) => match self.next_copy() {
                    Some(Ok(())) => {}
                    _ => return Err(error),
                },
            }
        };
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        (self.at, self.left) = (self.at + count as u64, self.left - count as u64);
        if self.left == 0
            && self
                .hasher
                .take()
                .is_some_and(|hasher| hasher.finish() != self.digest)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                ContentError::Damaged {
                    digest: self.digest.clone(),
                },
            ));
        }
        Ok(count)
    }
}

/// Content that is nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBlob {
    /// What it is.
    pub blob: Descriptor,
    /// The entries that need it.
    pub items: Vec<String>,
}

/// What the entries need and `blobs` lacks, or has in another size; by digest.
///
/// # Errors
/// When `blobs` cannot say.
pub fn missing_blobs<'a>(
    entries: impl IntoIterator<Item = &'a LockEntry>,
    blobs: &dyn BlobRead,
) -> Result<Vec<MissingBlob>, ContentError> {
    let mut asked: BTreeMap<&Digest, Option<MissingBlob>> = BTreeMap::new();
    for entry in entries {
        for blob in entry
            .parts
            .iter()
            .filter(|part| part.is_stored())
            .map(|part| &part.descriptor)
        {
            if !asked.contains_key(&blob.digest) {
                let there = blobs.stat(&blob.digest)? == Some(blob.size);
                let missing = (!there).then(|| MissingBlob {
                    blob: blob.clone(),
                    items: Vec::new(),
                });
                asked.insert(&blob.digest, missing);
            }
            if let Some(Some(missing)) = asked.get_mut(&blob.digest)
                && missing.items.last() != Some(&entry.name)
            {
                missing.items.push(entry.name.clone());
            }
        }
    }
    Ok(asked.into_values().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;

    const CONTENT: &[u8] = b"hello world, once more";

    /// A copy that breaks off after so many bytes, or has other bytes there and says nothing.
    struct Damaged {
        good: usize,
        lies: bool,
    }

    impl BlobRead for Damaged {
        fn stat(&self, _: &Digest) -> Result<Option<u64>, ContentError> {
            Ok(Some(CONTENT.len() as u64))
        }

        fn open(&self, _: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
            let (offset, good) = (offset as usize, self.good.max(offset as usize));
            let rest: Box<dyn Read + Send> = match self.lies {
                true => Box::new(io::repeat(b'x').take((CONTENT.len() - good) as u64)),
                false => Box::new(Broken),
            };
            Ok(Box::new(CONTENT[offset..good].chain(rest)))
        }
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame is damaged",
            ))
        }
    }

    /// What is read of these copies, and the good one where there is one; whether it came to its
    /// end.
    fn read(copies: &[(usize, bool)], good: bool, offset: u64) -> (Vec<u8>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let digest = Digest::sha256(CONTENT);
        let mut places: Vec<Arc<dyn BlobRead>> = Vec::new();
        for &(good, lies) in copies {
            places.push(Arc::new(Damaged { good, lies }));
        }
        if good {
            let disk = DiskStore::open(dir.path()).unwrap();
            let size = CONTENT.len() as u64;
            disk.put(
                &Descriptor {
                    digest: digest.clone(),
                    size,
                    media_type: "x/y".into(),
                },
                CONTENT,
            )
            .unwrap();
            places.push(Arc::new(disk));
        }
        let chain = BlobChain(places);
        let mut reader = match offset {
            0 => chain.open_whole(&digest).unwrap(),
            _ => chain.open(&digest, offset).unwrap(),
        };
        let mut bytes = Vec::new();
        let ended = reader.read_to_end(&mut bytes).is_ok();
        (bytes, ended)
    }

    #[test]
    fn a_damaged_copy_is_gone_on_with_from_the_next_that_has_it() {
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
    fn what_is_damaged_everywhere_or_lies_does_not_come_to_its_end() {
        let whole = CONTENT.len();
        assert_eq!(
            read(&[(5, false), (9, false)], false, 0),
            (CONTENT[..9].to_vec(), false)
        );
        let (bytes, ended) = read(&[(5, true), (whole, true)], false, 0);
        assert!(!ended && bytes.len() < whole, "{bytes:?}");
    }
}
