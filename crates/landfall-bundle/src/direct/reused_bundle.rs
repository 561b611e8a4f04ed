//! Reuses an unfinished bundle for another lock with the same file name: its complete stored blobs
//! are not downloaded again. Each copy is removed once the blob is in the new file.

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
    /// aside.
    pub(super) fn set_aside(path: &Path, journal: &Path, work: &Path) -> io::Result<()> {
        // if an earlier run was killed between these two renames, the file at `path` is new and
        // empty, and must not replace the one set aside
        if fs::metadata(path)?.len() > 0 {
            fs::rename(path, work.join("previous"))?;
        }
        // the file before its journal: after a crash in between, the next run still finds the
        // journal at this path and sets it aside
        fs::rename(journal, work.join("previous.journal"))
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
