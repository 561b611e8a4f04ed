//! A file of the store that holds an incomplete blob. It gets its final name when the blob is
//! complete, verified and synced to disk.

use super::disk_store::DiskStore;
use super::error::io;
use super::range_journal::{self, RangeJournal};
use crate::{ByteRange, PartialBlob, VerifiedWriter, WriteError};
use landfall_model::{Descriptor, Digest};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use tracing::info;

/// A partial file, which is locked against other processes while it is open.
#[derive(Debug)]
struct PartialFile {
    disk: DiskStore,
    digest: Digest,
    path: PathBuf,
    file: File,
    /// `None` if only one connection writes.
    journal: Option<RangeJournal>,
}

/// Opens the partial file of a blob, and waits while another process has it open. With
/// `keep_ranges`, the ranges that parallel connections wrote after the contiguous beginning are
/// kept and returned; otherwise they are discarded. Returns `None` if the blob is in the store.
pub(super) fn open(
    disk: &DiskStore,
    descriptor: &Descriptor,
    keep_ranges: bool,
) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError> {
    let digest = &descriptor.digest;
    let path = disk.partial_path(digest);
    // checked before the file is created: a run that is killed now must not leave an empty partial
    // file of a blob that is complete
    if !path.exists() && disk.has(digest, descriptor.size)? {
        return Ok(None);
    }
    loop {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io("open", &path))?;
        // waits while another process fetches the same blob; a complete blob is used below
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            info!(%digest, "waiting for another process that fetches this blob");
            file.lock().map_err(io("lock", &path))?;
        }
        // the process that held the lock before may have completed the file and renamed it
        let inode_at_path = std::fs::metadata(&path).map(|metadata| metadata.ino()).ok();
        let locked_inode = file.metadata().map_err(io("look at", &path))?.ino();
        if inode_at_path != Some(locked_inode) {
            if disk.has(digest, descriptor.size)? {
                return Ok(None);
            }
            continue;
        }
        if disk.has(digest, descriptor.size)? {
            std::fs::remove_file(&path).map_err(io("remove", &path))?;
            return Ok(None);
        }
        let mut length = file.metadata().map_err(io("look at", &path))?.len();
        // a file that is longer than the blob has wrong content
        if length > descriptor.size {
            file.set_len(0).map_err(io("empty", &path))?;
            range_journal::remove(&path).map_err(io("remove the journal of", &path))?;
            length = 0;
        }
        let (written, ranges) = match range_journal::read(&path, length) {
            Some((written, ranges)) if keep_ranges => (written, ranges),
            Some((written, _)) => {
                // the file is shortened first: without its journal, it counts as complete up to its
                // end
                file.set_len(written).map_err(io("shorten", &path))?;
                range_journal::remove(&path).map_err(io("remove the journal of", &path))?;
                (written, Vec::new())
            }
            None => (length, Vec::new()),
        };
        let mut journal = None;
        if keep_ranges {
            let new = RangeJournal::open(&path).map_err(io("write the journal of", &path))?;
            // recorded so that the beginning counts as written after parallel connections extend
            // the file
            new.add((0, written))
                .map_err(io("write the journal of", &path))?;
            journal = Some(new);
        }
        let partial = PartialFile {
            disk: disk.clone(),
            digest: digest.clone(),
            path,
            file,
            journal,
        };
        let mut writer = VerifiedWriter::new(partial, descriptor);
        // the bytes so far are hashed here; bytes that are written later are hashed as they arrive
        writer.absorb(written)?;
        return Ok(Some((writer, ranges)));
    }
}

impl PartialBlob for PartialFile {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
        self.file
            .read_exact_at(buffer, at)
            .map_err(io("read", &self.path))
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(io("write", &self.path))
    }

    fn record(&self, range: ByteRange) -> std::io::Result<()> {
        self.journal
            .iter()
            .try_for_each(|journal| journal.add(range))
    }

    fn clear(&self) -> Result<(), WriteError> {
        self.file.set_len(0).map_err(io("empty", &self.path))?;
        range_journal::remove(&self.path).map_err(io("remove the journal of", &self.path))
    }

    fn publish(&self) -> Result<(), WriteError> {
        self.disk
            // before the rename: after a crash, the final name must not refer to incomplete content
            .sync(&self.file)
            .map_err(io("write", &self.path))?;
        range_journal::remove(&self.path).map_err(io("remove the journal of", &self.path))?;
        let target = self.disk.path(&self.digest);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(io("create the folder", folder))?;
        }
        std::fs::rename(&self.path, &target).map_err(io("rename to", &target))?;
        let metadata = self.file.metadata().map_err(io("look at", &target))?;
        self.disk
            .records()
            .add(&self.digest, &metadata)
            .map_err(io("write the journal for", &target))
    }
}
