//! The store on disk: an OCI image layout, with landfall's own files in `.landfall/`.

use super::disk_content::io;
use super::layout_index::LayoutIndex;
use super::verified_journal::VerifiedJournal;
use crate::{FileStamp, WriteError, if_exists, sync_folder, temporary_file_in};
use landfall_model::{Digest, Hasher, INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT, read_chunks};
use landfall_os::{allocated_bytes, is_at};
use std::collections::BTreeSet;
use std::fs::{DirEntry, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{debug, trace};

/// The store on disk. It is cheap to clone, and several processes can use a store at the same time.
#[derive(Debug, Clone)]
pub struct DiskStore(Arc<DiskStoreInner>);

#[derive(Debug)]
pub(super) struct DiskStoreInner {
    pub(super) dir: PathBuf,
    pub(super) records: VerifiedJournal,
    /// Whether the store is deleted at the end of the run. If so, nothing is synced to disk.
    is_scratch: bool,
    /// A lock that is held while the store is open: shared by all processes that use the store, or
    /// exclusive for garbage collection.
    _in_use: File,
}

/// The file that marks a folder of `serve --writable`, which only [`DiskStore::open_pushed`] opens.
pub const PUSHED_MARKER: &str = ".landfall-serve";

/// The journal of verified blobs.
const VERIFIED: &str = ".landfall/verified";

const TEMPORARY: &str = ".landfall/temporary";

/// Removes the temporary files of processes that have ended. Those that cannot be removed do no
/// harm.
fn remove_abandoned(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // the lock is held until the file is gone: a process that has just created the file waits
        // for the lock, finds the name gone, and creates another file
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl DiskStore {
    /// Opens the store at `dir`, or creates it.
    ///
    /// # Errors
    /// If a file or folder of the store cannot be created or read, garbage is being collected, or
    /// the folder has content that was pushed to a server.
    pub fn open(dir: &Path) -> Result<DiskStore, WriteError> {
        DiskStore::open_layout(dir, File::try_lock_shared, false)
    }

    /// Opens the folder of `serve --writable`, which has [`PUSHED_MARKER`]. It has blobs like every
    /// store, but is not an OCI layout.
    ///
    /// # Errors
    /// If a file or folder of the store cannot be created or read, or another process uses it.
    pub fn open_pushed(dir: &Path) -> Result<DiskStore, WriteError> {
        DiskStore::open_blobs(dir, File::try_lock, false)
    }

    /// Like [`DiskStore::open`], for a store that is deleted at the end of the run. Nothing is
    /// synced to disk, because each sync would cost time.
    ///
    /// # Errors
    /// Like [`DiskStore::open`].
    pub fn scratch(dir: &Path) -> Result<DiskStore, WriteError> {
        DiskStore::open_layout(dir, File::try_lock_shared, true)
    }

    /// Like [`DiskStore::open`], but fails if another process uses the store.
    pub(super) fn open_exclusive(dir: &Path) -> Result<DiskStore, WriteError> {
        DiskStore::open_layout(dir, File::try_lock, false)
    }

    fn open_layout(
        dir: &Path,
        lock: fn(&File) -> Result<(), TryLockError>,
        is_scratch: bool,
    ) -> Result<DiskStore, WriteError> {
        // no lock names pushed content, so the next garbage collection would remove it
        if dir.join(PUSHED_MARKER).exists() {
            let dir = dir.display();
            return Err(WriteError::Refused(format!(
                "{dir} is a folder of `landfall serve --writable` and not a store; choose another \
                 store with --store DIR"
            )));
        }
        let disk = DiskStore::open_blobs(dir, lock, is_scratch)?;
        for (name, content) in [
            (LAYOUT_FILE, OCI_LAYOUT.to_vec()),
            (INDEX_FILE, LayoutIndex::default().to_bytes()),
        ] {
            if !dir.join(name).exists() {
                disk.create(name, content)?;
            }
        }
        Ok(disk)
    }

    /// Opens the folders of blobs and temporary files, and the journal.
    fn open_blobs(
        dir: &Path,
        lock: fn(&File) -> Result<(), TryLockError>,
        is_scratch: bool,
    ) -> Result<DiskStore, WriteError> {
        for folder in [
            dir.join("blobs/sha256"),
            dir.join(".landfall/partial"),
            dir.join(TEMPORARY),
        ] {
            std::fs::create_dir_all(&folder).map_err(io("create the folder", &folder))?;
        }
        let path = dir.join(".landfall/in-use");
        let in_use = File::options()
            .create(true)
            // used only as a lock; its content does not matter. Windows locks no file that can
            // only be appended to
            .append(true)
            .read(true)
            .open(&path)
            .map_err(io("open", &path))?;
        // `try_lock`: a gc must not wait for a pull that takes hours, and a pull must not wait for
        // a gc
        match lock(&in_use) {
            Err(TryLockError::WouldBlock) => {
                let dir = dir.display();
                return Err(WriteError::Refused(format!(
                    "another process uses the store {dir}; wait until it has ended"
                )));
            }
            Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
            Ok(()) => {}
        }
        remove_abandoned(&dir.join(TEMPORARY));
        let verified = dir.join(VERIFIED);
        let records = VerifiedJournal::open(&verified).map_err(io("open", &verified))?;
        Ok(DiskStore(Arc::new(DiskStoreInner {
            dir: dir.into(),
            records,
            is_scratch,
            _in_use: in_use,
        })))
    }

    /// Returns the folder of the store.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// Returns the path of a blob, whether it is present or not.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.0.dir.join(digest.layout_path())
    }

    /// Whether the blob is present and intact. A file that changed since it was hashed is hashed
    /// again, and removed if it is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has(&self, digest: &Digest, size: u64) -> Result<bool, WriteError> {
        let path = self.path(digest);
        let file_stamp = if_exists(FileStamp::at(&path)).map_err(io("look at", &path))?;
        let Some(file_stamp) = file_stamp else {
            return Ok(false);
        };
        // a damaged file with an unchanged stamp is found by `rehash` only
        if self.0.records.is_unchanged(digest, file_stamp) {
            trace!(%digest, "in the store; unchanged since it was hashed");
            return Ok(file_stamp.size == size);
        }
        let is_good = self.check(digest, &path, size)?;
        debug!(%digest, is_good, "in the store, but changed or not in its journal; hashed again");
        Ok(is_good)
    }

    /// Hashes the blob, even if the journal lists it, and removes it if it is damaged. Returns
    /// whether it is present and intact.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn rehash(&self, digest: &Digest, size: u64) -> Result<bool, WriteError> {
        let path = self.path(digest);
        if path.exists() {
            self.check(digest, &path, size)
        } else {
            Ok(false)
        }
    }

    fn check(&self, digest: &Digest, path: &Path, size: u64) -> Result<bool, WriteError> {
        let mut file = File::open(path).map_err(io("open", path))?;
        let mut hasher = Hasher::new(digest.algorithm());
        let mut length = 0;
        read_chunks(&mut file, |chunk| {
            length += chunk.len() as u64;
            hasher.update(chunk);
        })
        .map_err(io("read", path))?;
        if hasher.finish() == *digest {
            let file_stamp = FileStamp::of(&file).map_err(io("look at", path))?;
            self.0
                .records
                .add(digest, file_stamp)
                .map_err(io("write", &self.0.dir.join(VERIFIED)))?;
            // the blob is intact, so it is kept, even if the caller expects another size
            return Ok(length == size);
        }
        // another process may have replaced the file with an intact one meanwhile
        if is_at(&file, path).unwrap_or(false) {
            std::fs::remove_file(path).map_err(io("remove the damaged", path))?;
        }
        Ok(false)
    }

    /// Creates a temporary file, for example for a blob whose digest is not known yet. The file is
    /// locked. A file without a lock was left by a killed process, and is removed when the store is
    /// opened.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn temporary_file(&self) -> Result<tempfile::NamedTempFile, WriteError> {
        let folder = self.0.dir.join(TEMPORARY);
        loop {
            let file = temporary_file_in(&folder).map_err(io("write to", &folder))?;
            file.as_file().lock().map_err(io("lock", file.path()))?;
            // another process may have removed it as abandoned before it was locked
            if file.path().exists() {
                return Ok(file);
            }
        }
    }

    /// Adds a [`DiskStore::temporary_file`] as a blob. The caller has computed `digest` while it
    /// wrote the file.
    ///
    /// # Errors
    /// If it cannot be synced to disk or renamed.
    pub fn adopt(&self, file: tempfile::NamedTempFile, digest: &Digest) -> Result<(), WriteError> {
        let path = self.path(digest);
        // before the rename: after a crash, the final name must not refer to incomplete content
        self.sync(file.as_file()).map_err(io("write", &path))?;
        let file = DiskStore::rename(file, &path)?;
        let file_stamp = FileStamp::of(&file).map_err(io("look at", &path))?;
        self.0
            .records
            .add(digest, file_stamp)
            .map_err(io("write the journal for", &path))
    }

    /// Returns the path of the partial file of a blob.
    pub(super) fn partial_path(&self, digest: &Digest) -> PathBuf {
        let name = format!("{}-{}", digest.algorithm().as_str(), digest.hex());
        self.0.dir.join(".landfall/partial").join(name)
    }

    /// Returns how many bytes the partial file of a blob occupies; it may have holes.
    pub(super) fn partial_size_on_disk(&self, digest: &Digest) -> u64 {
        let metadata = std::fs::metadata(self.partial_path(digest));
        metadata.map_or(0, |metadata| allocated_bytes(&metadata))
    }

    /// Syncs the names of all blobs to disk.
    ///
    /// # Errors
    /// If a folder of blobs cannot be read or synced.
    pub fn sync_names(&self) -> Result<(), WriteError> {
        for folder in entries(&self.0.dir.join("blobs"))? {
            self.sync_folder(&folder.path())?;
        }
        Ok(())
    }

    /// Returns the paths of all blobs with their digests. Files and folders that do not belong to
    /// the store have no digest.
    ///
    /// # Errors
    /// If a folder of blobs cannot be read.
    pub fn blob_files(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, WriteError> {
        let mut files = Vec::new();
        for folder in entries(&self.0.dir.join("blobs"))? {
            // follows a link: a store may keep its blobs on another disk
            if !folder.path().is_dir() {
                files.push((folder.path(), None));
                continue;
            }
            let algorithm = folder.file_name();
            for file in entries(&folder.path())? {
                let name = file.file_name();
                let digest = format!("{}:{}", algorithm.display(), name.display());
                files.push((file.path(), digest.parse().ok()));
            }
        }
        Ok(files)
    }

    /// Removes the file of a blob. Returns whether it existed.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, digest: &Digest) -> Result<bool, WriteError> {
        let path = self.path(digest);
        let removed = if_exists(std::fs::remove_file(&path)).map_err(io("remove", &path))?;
        Ok(removed.is_some())
    }

    /// Removes from `index.json` and the journal everything that is not in `keep`.
    pub(super) fn retain(&self, keep: &BTreeSet<Digest>) -> Result<(), WriteError> {
        self.edit_index(|index| index.retain(keep))?;
        self.replace(
            &self.0.dir.join(VERIFIED),
            self.0.records.retained(keep).as_bytes(),
        )
    }

    pub(super) fn edit_index(&self, edit: impl FnOnce(&mut LayoutIndex)) -> Result<(), WriteError> {
        // read, edit and write under one lock: two pulls may add their entries at the same time
        let _guard = self.guard()?;
        let path = self.0.dir.join(INDEX_FILE);
        let old = std::fs::read(&path).map_err(io("read", &path))?;
        let mut index = LayoutIndex::parse(&old).map_err(|error| {
            let path = path.display();
            WriteError::Refused(format!(
                "store: {path} is not valid JSON: {error}; move it away, the blobs are kept"
            ))
        })?;
        edit(&mut index);
        let new = index.to_bytes();
        // an unchanged index is not written, which would cost two syncs
        if new != old {
            self.replace(&path, &new)?;
        }
        Ok(())
    }

    /// Replaces a small file in one step, and syncs its name to disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<(), WriteError> {
        self.put_file(path, content)?;
        self.sync_folder(path.parent().unwrap_or(path))
    }

    /// Replaces a small file in one step. Its name survives a crash only after
    /// [`DiskStore::sync_folder`].
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_file(&self, path: &Path, content: &[u8]) -> Result<(), WriteError> {
        let file = self.temporary_file()?;
        // not to `file` itself, whose errors contain its random name
        let written = file.as_file().write_all(content);
        written
            .and_then(|()| self.sync(file.as_file()))
            .map_err(io("write", path))?;
        DiskStore::rename(file, path).map(drop)
    }

    /// Gives a [`DiskStore::temporary_file`] that is on disk its final name. Creates the folder of
    /// `path` if it is missing.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn rename(file: tempfile::NamedTempFile, path: &Path) -> Result<File, WriteError> {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder).map_err(io("create the folder", folder))?;
        file.persist(path)
            .map_err(|error| io("write", path)(error.error))
    }

    /// Syncs a file of the store to disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn sync(&self, file: &File) -> std::io::Result<()> {
        if self.0.is_scratch {
            Ok(())
        } else {
            file.sync_all()
        }
    }

    /// Syncs the names in a folder of the store to disk; a missing folder has none.
    ///
    /// # Errors
    /// If it cannot be opened or synced.
    pub fn sync_folder(&self, folder: &Path) -> Result<(), WriteError> {
        if !self.0.is_scratch {
            if_exists(sync_folder(folder)).map_err(io("write the folder", folder))?;
        }
        Ok(())
    }

    pub(super) fn records(&self) -> &VerifiedJournal {
        &self.0.records
    }
}

/// Returns the entries of a folder of the store.
pub(super) fn entries(folder: &Path) -> Result<Vec<DirEntry>, WriteError> {
    let read =
        std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<DirEntry>>>);
    read.map_err(io("read the folder", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_pushed_content_is_not_a_store() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(PUSHED_MARKER), "").unwrap();
        for refused in [
            DiskStore::open(dir.path()),
            DiskStore::open_exclusive(dir.path()),
        ] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("--writable` and not a store"), "{message}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let pushed = DiskStore::open_pushed(dir.path()).unwrap();
        assert!(
            DiskStore::open_pushed(dir.path()).is_err(),
            "one process only"
        );
        assert_eq!(pushed.blob_files().unwrap(), []);
    }

    #[test]
    fn a_temporary_file_is_not_removed_while_its_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let folder = dir.path().join(TEMPORARY);
        let done = std::sync::atomic::AtomicBool::new(false);
        let lost = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        remove_abandoned(&folder);
                    }
                });
            }
            let is_lost = || {
                let mine = store.temporary_file()?;
                std::thread::yield_now();
                Ok(!mine.path().exists())
            };
            let lost: Result<Vec<bool>, WriteError> = (0..300).map(|_| is_lost()).collect();
            // also after an error, or the threads would not end
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            lost
        });
        assert!(!lost.unwrap().contains(&true));
    }

    #[test]
    fn only_abandoned_temporary_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let mine = store.temporary_file().unwrap();
        let abandoned = dir.path().join(TEMPORARY).join("left");
        std::fs::write(&abandoned, b"half a file").unwrap();
        DiskStore::open(dir.path()).unwrap();
        assert!(mine.path().exists() && !abandoned.exists());
        // a file that was given its final name is not removed
        store.adopt(mine, &Digest::sha256(b"")).unwrap();
        DiskStore::open(dir.path()).unwrap();
        assert!(store.path(&Digest::sha256(b"")).exists());
    }
}
