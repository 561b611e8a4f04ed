//! Files of landfall's own in the store: small ones, written whole, by one process at a time.

use super::disk_store::DiskStore;
use super::error::io;
use crate::WriteError;
use std::fs::File;

impl DiskStore {
    /// Writes a file of landfall's own in the store, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), WriteError> {
        self.replace(&self.dir().join(name), content)
    }

    /// Changes a file of landfall's own in the store, whole or not at all; `edit` gets its old
    /// content, empty where there is none.
    ///
    /// # Errors
    /// When it cannot be read or written.
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

    /// Held while a file of the store is read, changed and written: by one process at a time.
    pub(super) fn guard(&self) -> Result<File, WriteError> {
        let path = self.dir().join(".landfall/lock");
        let file = File::create(&path).map_err(io("open", &path))?;
        file.lock().map_err(io("lock", &path))?;
        Ok(file)
    }
}
