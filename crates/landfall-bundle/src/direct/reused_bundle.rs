//! Reuses an unfinished bundle that has the same file name but another lock: its complete stored
//! blobs are not downloaded again. Each copy is removed once the blob is in the new file.

use super::journal;
use crate::format::stored::{StoredReader, stored_len};
use landfall_content::{BlobRead, ContentError};
use landfall_model::Digest;
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The unfinished file that was set aside, with the offset of the first frame and the size of each
/// complete blob.
#[derive(Debug)]
pub(super) struct ReusedBundle {
    file: Arc<File>,
    whole: HashMap<Digest, (u64, u64)>,
}

impl ReusedBundle {
    /// Sets the file at `path` and its journal aside, and replaces an older file that was set
    /// aside. An empty file is not set aside: it may be from a run that failed before it wrote a
    /// byte, for example because the disk was too small.
    pub(super) fn set_aside(path: &Path, journal: &Path, work: &Path) -> io::Result<()> {
        let aside = work.join("previous.journal");
        if fs::metadata(path)?.len() > 0 {
            // the older journal first: without it, the next run knows that this one was killed
            // before the journal at `journal` was set aside
            fs::remove_file(&aside).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
            fs::rename(path, work.join("previous"))?;
        }
        if aside.exists() {
            return fs::remove_file(journal);
        }
        fs::rename(journal, aside)
    }

    /// Opens the file that was set aside; `None` if there is none.
    pub(super) fn open(work: &Path) -> Option<ReusedBundle> {
        let (_, known) = journal::read(&work.join("previous.journal")).ok()??;
        let file = File::options()
            .read(true)
            .write(true)
            .open(work.join("previous"))
            .ok()?;
        Some(ReusedBundle {
            file: file.into(),
            whole: known.whole,
        })
    }

    /// The disk space that the file occupies, in bytes.
    pub(super) fn taken(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    /// Frees the disk space of a blob, if the file system supports holes.
    pub(super) fn drop_copy(&self, digest: &Digest) {
        if let Some((start, size)) = self.whole.get(digest) {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // without holes the space is freed with the whole file, at the end
            let _ = fallocate(&self.file, hole, *start, stored_len(*size).max(1));
        }
    }
}

impl BlobRead for ReusedBundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.whole.get(digest).map(|(_, size)| *size))
    }

    /// Opens content without verifying it; the writer verifies the digest.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let &(start, size) = self
            .whole
            .get(digest)
            .ok_or_else(|| ContentError::missing(digest))?;
        Ok(Box::new(StoredReader {
            source: self.file.clone(),
            start,
            at: offset,
            size,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_does_not_replace_the_one_that_was_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path();
        let (path, journal) = (work.join("B.partial"), work.join("journal"));
        let digest = Digest::sha256(b"a");
        let begin = |bytes: &[u8], lines: &str| {
            fs::write(&path, bytes).unwrap();
            fs::write(&journal, format!("landfall lock\n{lines}")).unwrap();
        };
        let size = || {
            let reused = ReusedBundle::open(work).unwrap();
            reused.stat(&digest).unwrap()
        };
        begin(b"content", &format!("{digest} whole 0 7\n"));
        ReusedBundle::set_aside(&path, &journal, work).unwrap();
        assert_eq!(size(), Some(7));
        // runs for other locks fail before their first byte
        for _ in 0..2 {
            begin(b"", "");
            ReusedBundle::set_aside(&path, &journal, work).unwrap();
            assert_eq!(size(), Some(7));
            assert!(!journal.exists());
        }

        // a run that is killed between the two renames is completed by the next one
        begin(b"content", &format!("{digest} whole 0 5\n"));
        fs::remove_file(work.join("previous.journal")).unwrap();
        fs::rename(&path, work.join("previous")).unwrap();
        fs::write(&path, "").unwrap();
        ReusedBundle::set_aside(&path, &journal, work).unwrap();
        assert_eq!(size(), Some(5));
    }
}
