//! A partial file of the store: content that is not whole yet. It gets its final name when it is
//! whole, verified and on disk.

use super::disk_store::DiskStore;
use super::error::io;
use super::range_journal::{self, Journal};
use crate::{ByteRange, PartialBlob, VerifiedWriter, WriteError};
use landfall_model::{Descriptor, Digest};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// A partial file, locked against other processes.
#[derive(Debug)]
struct Partial {
    disk: DiskStore,
    digest: Digest,
    path: PathBuf,
    file: File,
    /// Where several connections write.
    journal: Option<Journal>,
}

/// Opens the partial file of some content, and waits while another process has it. With
/// `keep_ranges` the ranges that several connections brought behind the beginning are kept, and
/// returned; without, they are discarded. `None` where the content is in the store.
pub(super) fn open(
    disk: &DiskStore,
    descriptor: &Descriptor,
    keep_ranges: bool,
) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError> {
    let digest = &descriptor.digest;
    let path = disk.partial_path(digest);
    // who is killed here leaves no file behind that nobody asks for again
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
        file.lock().map_err(io("lock", &path))?;
        // whoever held the lock may have finished the file and moved it away
        let here = std::fs::metadata(&path).map(|metadata| metadata.ino()).ok();
        let ours = file.metadata().map_err(io("look at", &path))?.ino();
        if here != Some(ours) {
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
        if length > descriptor.size {
            file.set_len(0).map_err(io("empty", &path))?;
            range_journal::remove(&path).map_err(io("remove the journal of", &path))?;
            length = 0;
        }
        let (begin, apart) = match range_journal::read(&path, length) {
            Some((begin, apart)) if keep_ranges => (begin, apart),
            Some((begin, _)) => {
                // in this order: a file without a journal is content as far as it goes
                file.set_len(begin).map_err(io("shorten", &path))?;
                range_journal::remove(&path).map_err(io("remove the journal of", &path))?;
                (begin, Vec::new())
            }
            None => (length, Vec::new()),
        };
        let journal = keep_ranges
            .then(|| Journal::open(&path).and_then(|new| new.add((0, begin)).map(|()| new)));
        let journal = journal
            .transpose()
            .map_err(io("write the journal of", &path))?;
        let partial = Partial {
            disk: disk.clone(),
            digest: digest.clone(),
            path,
            file,
            journal,
        };
        let mut writer = VerifiedWriter::new(partial, descriptor);
        writer.absorb(begin)?;
        return Ok(Some((writer, apart)));
    }
}

impl PartialBlob for Partial {
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
            .sync(&self.file)
            .map_err(io("write", &self.path))?;
        range_journal::remove(&self.path).map_err(io("remove the journal of", &self.path))?;
        let target = self.disk.path(&self.digest);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(io("make the folder", folder))?;
        }
        std::fs::rename(&self.path, &target).map_err(io("rename to", &target))?;
        let metadata = self.file.metadata().map_err(io("look at", &target))?;
        self.disk
            .records()
            .add(&self.digest, &metadata)
            .map_err(io("write the journal for", &target))
    }
}
