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
