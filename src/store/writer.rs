//! Writing content: hashed while written, final only after size and digest match and it is on disk.

use super::disk::{Disk, StoreError, io};
use super::islands::{self, Island, Journal};
use crate::model::{Descriptor, Hasher};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// Writes one piece of content. Dropped before [`Writer::commit`], it leaves what it has for the next
/// run to go on with.
#[derive(Debug)]
pub struct Writer {
    disk: Disk,
    descriptor: Descriptor,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    offset: u64,
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher")
    }
}

impl Writer {
    /// With `wide` what lies apart from the beginning is kept, and given back: content that several
    /// connections brought. Without, it is thrown away.
    pub(super) fn open(
        disk: Disk,
        descriptor: &Descriptor,
        wide: bool,
    ) -> Result<Option<(Writer, Vec<Island>)>, StoreError> {
        let digest = &descriptor.digest;
        let name = format!("{}-{}", digest.algorithm().as_str(), digest.hex());
        let path = disk.dir().join(".landfall/partial").join(name);
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
            let length = file.metadata().map_err(io("look at", &path))?.len();
            let (begin, apart) = match islands::read(&path, length) {
                Some((begin, apart)) if wide => (begin, apart),
                Some((begin, _)) => {
                    // in this order: a file without a journal is content as far as it goes
                    file.set_len(begin).map_err(io("shorten", &path))?;
                    islands::remove(&path).map_err(io("remove the journal of", &path))?;
                    (begin, Vec::new())
                }
                None => (length, Vec::new()),
            };
            let hasher = Hasher::new(digest.algorithm());
            let mut writer = Writer { disk, descriptor: descriptor.clone(), path, file, hasher, offset: 0 };
            if length > descriptor.size {
                writer.restart()?;
                return Ok(Some((writer, Vec::new())));
            }
            writer.absorb(begin)?;
            return Ok(Some((writer, apart)));
        }
    }

    /// Takes in what lies in the file already, up to `end`.
    pub(super) fn absorb(&mut self, end: u64) -> Result<(), StoreError> {
        let mut buffer = vec![0; 1 << 18];
        while self.offset < end {
            let length = buffer.len().min(usize::try_from(end - self.offset).unwrap_or(usize::MAX));
            let piece = &mut buffer[..length];
            self.file.read_exact_at(piece, self.offset).map_err(io("read", &self.path))?;
            self.hasher.update(piece);
            self.offset += length as u64;
        }
        Ok(())
    }

    /// The file, to write apart from the beginning, and a journal of what is written where.
    pub(super) fn apart(&self) -> Result<(File, Journal), StoreError> {
        let file = self.file.try_clone().map_err(io("open", &self.path))?;
        Ok((file, Journal::open(&self.path).map_err(io("write the journal of", &self.path))?))
    }

    /// How many bytes it has: where to go on.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Throws away what it has and begins again.
    ///
    /// # Errors
    /// When the file cannot be emptied.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(io("empty", &self.path))?;
        islands::remove(&self.path).map_err(io("remove the journal of", &self.path))?;
        self.hasher = Hasher::new(self.descriptor.digest.algorithm());
        self.offset = 0;
        Ok(())
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When more bytes come than the content has, or the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let end = self.offset + bytes.len() as u64;
        if end > self.descriptor.size {
            let (wanted, size) = (self.descriptor.digest.clone(), self.descriptor.size);
            self.restart()?;
            return Err(StoreError::Size { wanted, size, found: end });
        }
        self.file.write_all_at(bytes, self.offset).map_err(io("write", &self.path))?;
        self.hasher.update(bytes);
        self.offset = end;
        Ok(())
    }

    /// Checks size and digest, brings the content to disk, and gives it its final name.
    ///
    /// # Errors
    /// A wrong size leaves the partial; a wrong digest removes it.
    pub fn commit(mut self) -> Result<(), StoreError> {
        let wanted = self.descriptor.digest.clone();
        if self.offset != self.descriptor.size {
            return Err(StoreError::Size { wanted, size: self.descriptor.size, found: self.offset });
        }
        let found = self.hasher.clone().finish();
        if found != wanted {
            self.restart()?;
            return Err(StoreError::Digest { wanted, found });
        }
        self.file.sync_all().map_err(io("write", &self.path))?;
        islands::remove(&self.path).map_err(io("remove the journal of", &self.path))?;
        let target = self.disk.path(&wanted);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(io("make the folder", folder))?;
        }
        std::fs::rename(&self.path, &target).map_err(io("rename to", &target))?;
        let metadata = self.file.metadata().map_err(io("look at", &target))?;
        self.disk.records().add(&wanted, &metadata).map_err(io("write the journal for", &target))
    }
}
