//! The disk store as a source of blobs and as the destination of a pull.

use super::disk_store::DiskStore;
use super::partial_file;
use crate::error::hint;
use crate::{
    BlobRead, BlobSink, BlobStore, ByteRange, ContentError, DiskSpace, FileStamp, FollowerSender,
    IdleSlots, LocalSink, LocalStore, LockEntry, VerifiedRead, VerifiedWriter, WriteError,
    if_exists,
};
use landfall_model::{Descriptor, Digest, Limits, sum_sizes};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

impl DiskStore {
    /// Begins to write a blob, or resumes the write of an earlier run. Waits while another process
    /// writes the same blob. Returns `None` if the blob is present by now.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn writer(&self, descriptor: &Descriptor) -> Result<Option<VerifiedWriter>, WriteError> {
        Ok(partial_file::open(self, descriptor, false)?.map(|(writer, _)| writer))
    }

    /// Stores a small blob, unless it is present.
    ///
    /// # Errors
    /// If digest or size differ, or the store cannot be written.
    pub fn put(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
        if self.has(&descriptor.digest, descriptor.size)? {
            return Ok(());
        }
        match self.writer(descriptor)? {
            Some(mut writer) => {
                // the whole content is in memory, so the bytes of an earlier run are not needed
                writer.restart()?;
                writer.write(bytes)?;
                writer.commit()
            }
            None => Ok(()),
        }
    }
}

impl BlobRead for DiskStore {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        match if_exists(std::fs::metadata(self.path(digest))) {
            Ok(metadata) => Ok(metadata.map(|metadata| metadata.len())),
            Err(source) => Err(ContentError::read(digest, source)),
        }
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let Some(size) = self.stat(digest)? else {
            return Err(ContentError::missing(digest));
        };
        let unreadable = |source| ContentError::read(digest, source);
        // a blob that changed since it was hashed is hashed again before a byte is returned
        let is_intact = self.has(digest, size);
        if !is_intact.map_err(|error| unreadable(std::io::Error::other(error)))? {
            return Err(ContentError::damaged(digest));
        }
        let mut file = File::open(self.path(digest)).map_err(unreadable)?;
        file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
        Ok(Box::new(file))
    }
}

impl VerifiedRead for DiskStore {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        let file_stamp = FileStamp::at(&self.path(digest));
        let file_stamp = file_stamp.map_err(|source| ContentError::read(digest, source))?;
        Ok(vec![file_stamp])
    }
}

impl BlobStore for DiskStore {
    fn has_blob(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        if rehash {
            self.rehash(digest, *size)
        } else {
            self.has(digest, *size)
        }
    }

    fn needs_hashing(&self, descriptor: &Descriptor, rehash: bool) -> bool {
        let Descriptor { digest, .. } = descriptor;
        // a missing file has nothing to hash
        FileStamp::at(&self.path(digest))
            .is_ok_and(|file_stamp| rehash || !self.records().is_unchanged(digest, file_stamp))
    }

    fn put(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
        self.put(descriptor, bytes)
    }

    fn sink(
        self: Arc<Self>,
        limits: Limits,
        slots: Option<IdleSlots>,
        follower: Option<FollowerSender>,
    ) -> Arc<dyn BlobSink> {
        Arc::new(LocalSink::new(self, limits, slots, follower))
    }

    fn disk_space(
        &self,
        wanted: &mut dyn Iterator<Item = (&Digest, u64)>,
    ) -> Result<Option<DiskSpace>, WriteError> {
        // a partly written blob needs less
        let needed =
            wanted.map(|(digest, size)| size.saturating_sub(self.partial_size_on_disk(digest)));
        let space = DiskSpace::measure(self.dir(), sum_sizes(needed));
        space.map(Some).map_err(io("look at", self.dir()))
    }

    fn record_complete(
        &self,
        entries: &mut dyn Iterator<Item = LockEntry>,
    ) -> Result<(), WriteError> {
        // first, so that after a crash the index names no blob that is missing
        self.sync_names()?;
        self.edit_index(|index| index.add(entries))
    }
}

impl LocalStore for DiskStore {
    fn begin(
        &self,
        descriptor: &Descriptor,
        keep_ranges: bool,
    ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError> {
        partial_file::open(self, descriptor, keep_ranges)
    }
}

/// Returns a function that turns an I/O error into the error of `action` on `path` in the store.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> WriteError {
    move |source| {
        let hint = match source.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::NotADirectory => {
                "; choose another store with --store DIR"
            }
            std::io::ErrorKind::ReadOnlyFilesystem => {
                "; a store must be writable: copy it, and name the copy with --store DIR. Bundles \
                 are read from such media"
            }
            _ => hint(&source),
        };
        WriteError::Io {
            sink: "store: ",
            action,
            path: path.into(),
            source,
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_on_read_only_media_or_below_a_file_has_a_next_step() {
        let error = std::io::ErrorKind::ReadOnlyFilesystem.into();
        let message = io("open", Path::new("in-use"))(error).to_string();
        assert!(
            message.starts_with("store: cannot open in-use: ")
                && message.contains("; a store must be writable: copy it"),
            "{message}"
        );
        let error = std::io::ErrorKind::NotADirectory.into();
        let message = io("create", Path::new("file/blobs"))(error).to_string();
        assert!(
            message.ends_with("choose another store with --store DIR"),
            "{message}"
        );
    }

    fn blob(bytes: &[u8]) -> Descriptor {
        Descriptor {
            digest: Digest::sha256(bytes),
            size: bytes.len() as u64,
            media_type: "x/y".into(),
        }
    }

    #[test]
    fn a_stored_blob_survives_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let hello = blob(b"hello");
        assert!(!store.has(&hello.digest, 5).unwrap());
        store.put(&hello, b"hello").unwrap();
        let again = DiskStore::open(dir.path()).unwrap();
        assert!(again.has(&hello.digest, 5).unwrap());
        assert_eq!(again.read(&hello).unwrap(), b"hello");
        let mut rest = String::new();
        again
            .open(&hello.digest, 3)
            .unwrap()
            .read_to_string(&mut rest)
            .unwrap();
        assert_eq!(rest, "lo");
    }

    #[test]
    fn a_changed_file_is_hashed_again_and_removed_if_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let hello = blob(b"hello");
        store.put(&hello, b"hello").unwrap();
        let path = store.path(&hello.digest);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"hellO").unwrap();
        assert!(store.read(&hello).is_err());
        assert!(!path.exists());
        std::fs::write(&path, b"hello").unwrap();
        assert!(store.has(&hello.digest, 5).unwrap());
    }

    #[test]
    fn a_partial_blob_is_resumed_and_wrong_bytes_are_discarded() {
        let dir = tempfile::tempdir().unwrap();
        let store = DiskStore::open(dir.path()).unwrap();
        let hello = blob(b"hello");
        let mut writer = store.writer(&hello).unwrap().unwrap();
        writer.write(b"hel").unwrap();
        drop(writer);
        let mut writer = store.writer(&hello).unwrap().unwrap();
        assert_eq!(writer.offset(), 3);
        writer.write(b"lo").unwrap();
        writer.commit().unwrap();
        assert!(store.writer(&hello).unwrap().is_none());
        let other = blob(b"other");
        let mut writer = store.writer(&other).unwrap().unwrap();
        writer.write(b"wrong").unwrap();
        assert!(matches!(writer.commit(), Err(WriteError::Digest { .. })));
        assert_eq!(store.writer(&other).unwrap().unwrap().offset(), 0);
    }
}
