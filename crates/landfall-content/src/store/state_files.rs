//! Small files with landfall's own state in the store. Each is replaced atomically, and only one
//! process edits them at a time.

use super::disk_store::DiskStore;
use super::error::io;
use crate::WriteError;
use std::fs::File;

impl DiskStore {
    /// Replaces a state file in one step.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), WriteError> {
        self.replace(&self.dir().join(name), content)
    }

    /// Edits a state file in one step. `edit` receives the old content, empty if the file is
    /// missing.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<(), WriteError> {
        let _guard = self.guard()?;
        let path = self.dir().join(name);
        let old = match std::fs::read(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io("read", &path)(error)),
        };
        let new = edit(&old);
        if new == old {
            Ok(())
        } else {
            self.replace(&path, &new)
        }
    }

    /// Creates a file of the layout. Another process may have created it since it was found to be
    /// missing, and may have added names to it, so an existing file is kept.
    pub(super) fn create(&self, name: &str, content: Vec<u8>) -> Result<(), WriteError> {
        self.edit(name, |old| {
            if old.is_empty() {
                content
            } else {
                old.to_vec()
            }
        })
    }

    /// Locks the state files against other processes while a state file is read, edited and
    /// written. Dropping the returned file releases the lock.
    pub(super) fn guard(&self) -> Result<File, WriteError> {
        let path = self.dir().join(".landfall/lock");
        // a file of its own, because state files are replaced and a lock on them would be lost
        let file = File::create(&path).map_err(io("open", &path))?;
        file.lock().map_err(io("lock", &path))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::INDEX_FILE;

    #[test]
    fn a_process_that_creates_a_store_keeps_the_index_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let index = dir.path().join(INDEX_FILE);
        std::fs::write(&index, "names of another process").unwrap();
        // as if the file had been missing when it was looked up
        let empty = b"{}".to_vec();
        store.create(INDEX_FILE, empty.clone()).unwrap();
        assert_eq!(std::fs::read(&index).unwrap(), b"names of another process");
        std::fs::remove_file(&index).unwrap();
        store.create(INDEX_FILE, empty.clone()).unwrap();
        assert_eq!(std::fs::read(&index).unwrap(), empty);
    }
}
