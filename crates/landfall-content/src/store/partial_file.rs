//! A file of the store that holds an incomplete blob. It gets its final name when the blob is
//! complete, verified and synced to disk.

use super::disk_content::io;
use super::disk_store::DiskStore;
use super::verified_journal::open_journal;
use crate::{
    ByteRange, FileStamp, PartialBlob, VerifiedWriter, WriteError, if_exists, written_ranges,
};
use landfall_model::{Descriptor, Digest, locked};
use landfall_os::{FileExt, is_at, wait_locked};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
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
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        // waits while another process fetches the same blob; a complete blob is used below
        let file = wait_locked(&mut options, &path, || {
            info!(%digest, "waiting for another process that fetches this blob");
        })
        .map_err(io("open", &path))?;
        // the process that held the lock before may have completed the file and renamed it
        if !is_at(&file, &path).unwrap_or(false) {
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
            remove(&path).map_err(io("remove the journal of", &path))?;
            length = 0;
        }
        let (written, ranges) = match read(&path, length) {
            Some((written, ranges)) if keep_ranges => (written, ranges),
            Some((written, _)) => {
                // the file is shortened first: without its journal, it counts as complete up to its
                // end
                file.set_len(written).map_err(io("shorten", &path))?;
                remove(&path).map_err(io("remove the journal of", &path))?;
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
        remove(&self.path).map_err(io("remove the journal of", &self.path))
    }

    fn publish(&self) -> Result<(), WriteError> {
        self.disk
            // before the rename: after a crash, the final name must not refer to incomplete content
            .sync(&self.file)
            .map_err(io("write", &self.path))?;
        remove(&self.path).map_err(io("remove the journal of", &self.path))?;
        let target = self.disk.path(&self.digest);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(io("create the folder", folder))?;
        }
        std::fs::rename(&self.path, &target).map_err(io("rename to", &target))?;
        let file_stamp = FileStamp::of(&self.file).map_err(io("look at", &target))?;
        self.disk
            .records()
            .add(&self.digest, file_stamp)
            .map_err(io("write the journal for", &target))
    }
}

// Records which ranges of a partial file are written, while several connections fetch one blob. A
// partial file without a journal is complete from its first byte to its end.

/// The journal of a partial file. Its lines are `FROM TO`, in the order of the writes.
#[derive(Debug)]
pub(super) struct RangeJournal(Mutex<File>);

impl RangeJournal {
    /// Opens or creates the journal of the partial file at `path`.
    pub(super) fn open(path: &Path) -> std::io::Result<RangeJournal> {
        let file = open_journal(&journal_path(path))?;
        Ok(RangeJournal(Mutex::new(file)))
    }

    /// Records that a range was written.
    pub(super) fn add(&self, (from, to): ByteRange) -> std::io::Result<()> {
        let mut file = locked(&self.0);
        // one write per line, so that a killed process leaves at most one incomplete line
        file.write_all(format!("{from} {to}\n").as_bytes())
    }
}

/// The extension of a journal's file name.
pub(super) const SUFFIX: &str = ".ranges";

fn journal_path(path: &Path) -> PathBuf {
    path.with_extension(&SUFFIX[1..])
}

/// Reads the journal of the partial file at `path`, which is `length` bytes long. Returns the
/// length of the contiguous beginning that is written, and the ranges after it; `None` if there is
/// no journal.
pub(super) fn read(path: &Path, length: u64) -> Option<(u64, Vec<ByteRange>)> {
    let text = std::fs::read_to_string(journal_path(path)).ok()?;
    // a crash may have cut off the last line
    let lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.split_once(' '));
    let all = lines
        .filter_map(|(from, to)| Some((from.parse().ok()?, to.parse::<u64>().ok()?.min(length))));
    // a crash may also have lost data that the journal already lists, so no range exceeds `length`
    Some(written_ranges(all.collect()))
}

/// Removes the journal of the partial file at `path`, if there is one.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    if_exists(std::fs::remove_file(journal_path(path))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_lists_the_beginning_and_the_ranges_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sha256-aa");
        assert_eq!(read(&path, 100), None);
        let journal = RangeJournal::open(&path).unwrap();
        for range in [(0, 10), (40, 50), (50, 60), (10, 20), (80, 200)] {
            journal.add(range).unwrap();
        }
        assert_eq!(read(&path, 100), Some((20, vec![(40, 60), (80, 100)])));
        assert_eq!(read(&path, 0), Some((0, vec![])));
        // cut off in the middle of a line
        std::fs::write(journal_path(&path), "0 10\n10 2").unwrap();
        assert_eq!(read(&path, 100), Some((10, vec![])));
        let journal = RangeJournal::open(&path).unwrap();
        journal.add((30, 40)).unwrap();
        assert_eq!(read(&path, 100), Some((10, vec![(30, 40)])));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path, 100), None);
    }
}
