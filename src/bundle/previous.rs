//! What was fetched for a bundle of another lock, under the same name: its whole stored blobs need not be
//! fetched again. Each copy goes when the blob is in the new file.

use super::{frame, journal};
use crate::content::{BlobRead, ContentError};
use crate::model::Digest;
use rustix::fs::{FallocateFlags, fallocate};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// The file that was set aside, and where its whole blobs are: offset of the first frame, and size.
#[derive(Debug)]
pub(super) struct Previous {
    file: Arc<File>,
    whole: HashMap<Digest, (u64, u64)>,
}

impl Previous {
    /// Sets the file at `path` and its journal aside. What was set aside before is lost.
    pub(super) fn set_aside(path: &Path, journal: &Path, work: &Path) -> io::Result<()> {
        // an empty one was made after a file that was set aside by a run that was killed here
        if fs::metadata(path)?.len() > 0 {
            fs::rename(path, work.join("previous"))?;
        }
        fs::rename(journal, work.join("previous.journal"))
    }

    /// Opens what was set aside, if there is something.
    pub(super) fn open(work: &Path) -> Option<Previous> {
        let (_, known) = journal::read(&work.join("previous.journal")).ok()??;
        let file = File::options().read(true).write(true).open(work.join("previous")).ok()?;
        Some(Previous { file: file.into(), whole: known.whole })
    }

    /// Bytes that it takes on disk.
    pub(super) fn taken(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    /// Gives the room of a blob back, where the file system can do that.
    pub(super) fn drop_copy(&self, digest: &Digest) {
        if let Some((start, size)) = self.whole.get(digest) {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&self.file, hole, *start, frame::stored_len(*size).max(1));
        }
    }
}

impl BlobRead for Previous {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.whole.get(digest).map(|(_, size)| *size))
    }

    /// The content is checked where it goes, not here.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        let &(start, size) = self.whole.get(digest).ok_or_else(missing)?;
        Ok(Box::new(Raw { file: self.file.clone(), start, at: offset, size }))
    }
}

/// Reads content from stored frames that begin at `start`.
struct Raw {
    file: Arc<File>,
    start: u64,
    at: u64,
    size: u64,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (place, run) = frame::stored_place(self.at);
        let count = self.size.saturating_sub(self.at).min(run as u64).min(buffer.len() as u64) as usize;
        self.file.read_exact_at(&mut buffer[..count], self.start + place)?;
        self.at += count as u64;
        Ok(count)
    }
}
