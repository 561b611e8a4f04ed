//! Reusing an unfinished bundle of another lock under the same name: its complete stored blobs are
//! not fetched again. Each copy is removed when the blob is in the new file.

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

/// The file that was set aside, and where its complete blobs are: offset of the first frame, and
/// size.
#[derive(Debug)]
pub(super) struct Reuse {
    file: Arc<File>,
    whole: HashMap<Digest, (u64, u64)>,
}

impl Reuse {
    /// Sets the file at `path` and its journal aside. What was set aside before is lost.
    pub(super) fn set_aside(path: &Path, journal: &Path, work: &Path) -> io::Result<()> {
        // an empty one was made after a file that was set aside by a run that was killed here
        if fs::metadata(path)?.len() > 0 {
            fs::rename(path, work.join("previous"))?;
        }
        fs::rename(journal, work.join("previous.journal"))
    }

    /// Opens what was set aside, if there is something.
    pub(super) fn open(work: &Path) -> Option<Reuse> {
        let (_, known) = journal::read(&work.join("previous.journal")).ok()??;
        let file = File::options()
            .read(true)
            .write(true)
            .open(work.join("previous"))
            .ok()?;
        Some(Reuse {
            file: file.into(),
            whole: known.whole,
        })
    }

    /// Bytes that it takes on disk.
    pub(super) fn taken(&self) -> u64 {
        self.file.metadata().map_or(0, |data| data.blocks() * 512)
    }

    /// Frees the room of a blob, where the file system can do that.
    pub(super) fn drop_copy(&self, digest: &Digest) {
        if let Some((start, size)) = self.whole.get(digest) {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&self.file, hole, *start, stored_len(*size).max(1));
        }
    }
}

impl BlobRead for Reuse {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.whole.get(digest).map(|(_, size)| *size))
    }

    /// Opens content that is not checked here, but where it is written to.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing {
            digest: digest.clone(),
        };
        let &(start, size) = self.whole.get(digest).ok_or_else(missing)?;
        Ok(Box::new(StoredReader {
            source: self.file.clone(),
            start,
            at: offset,
            size,
        }))
    }
}
