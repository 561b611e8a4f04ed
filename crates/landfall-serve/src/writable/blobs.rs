//! Pushed blobs: uploads in progress, and content by digest.

use super::frame_checksums::{CheckedReader, FRAME, FrameChecksums};
use super::quota::{FolderQuota, QuotaShare, WritableStoreError};
use landfall_content::store::DiskStore;
use landfall_content::{
    BlobRead, ContentError, FileRunRead, FileRuns, FileStamp, RecentChecks, VerifiedRead,
    WriteError, if_exists,
};
use landfall_model::{Algorithm, Digest, Hasher, digest_of, for_each_chunk, locked};
use landfall_os::set_file_mode;
use ring::rand::{self, SystemRandom};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// The blobs in the folder of `--writable`: a store on disk with a quota, from which clients may
/// remove content, and which compares checksums before it returns bytes.
pub(crate) struct WritableBlobs {
    disk: DiskStore,
    pub(super) quota: Arc<FolderQuota>,
    /// Frames whose checksums were compared a moment ago.
    checks: Arc<RecentChecks<FileStamp>>,
    /// For each blob, when a client last learned that the blob is here: the client may rely on that
    /// in a push.
    protected: Mutex<HashMap<Digest, Instant>>,
    /// Locked while the file of a blob is added, replaced or removed, so that the quota counts its
    /// bytes once.
    naming: Mutex<()>,
}

/// Content that is being received, in a temporary file.
pub(crate) struct IncomingBlob {
    /// Identifies the upload; cannot be guessed.
    pub(crate) id: String,
    file: NamedTempFile,
    hasher: Hasher,
    algorithm: Algorithm,
    checksums: FrameChecksums,
    share: QuotaShare,
    /// The number of bytes received.
    pub(crate) size: u64,
}

impl WritableBlobs {
    /// The blobs in `disk`, which may have at most `max` bytes in total.
    pub(super) fn open(disk: DiskStore, max: Option<u64>) -> io::Result<WritableBlobs> {
        // counted from the files, because the folder has no record of its size
        let used = stored_blobs(&disk)?
            .iter()
            .map(|(_, metadata)| metadata.len())
            .sum();
        Ok(WritableBlobs {
            disk,
            quota: Arc::new(FolderQuota::new(used, max)),
            checks: Arc::new(RecentChecks::default()),
            protected: Mutex::default(),
            naming: Mutex::default(),
        })
    }

    /// All blobs with the metadata of their files.
    pub(super) fn all(&self) -> io::Result<Vec<(Digest, Metadata)>> {
        stored_blobs(&self.disk)
    }

    /// Removes a blob. Returns whether it existed.
    pub(super) fn remove(&self, digest: &Digest) -> io::Result<bool> {
        let _naming = locked(&self.naming);
        let Some(file_stamp) = if_exists(FileStamp::at(&self.path(digest)))? else {
            return Ok(false);
        };
        let existed = self.disk.remove(digest)?;
        if existed {
            self.quota.release(file_stamp.size);
            self.checks.forget(&file_stamp);
        }
        // after the blob: checksums without a blob do no harm
        if_exists(fs::remove_file(self.checksums_path(digest)))?;
        Ok(existed)
    }

    /// Protects a blob, if it exists, from upcoming sweeps, because a client learns that it is
    /// here.
    pub(crate) fn protect(&self, digest: &Digest) {
        let mut protected = locked(&self.protected);
        if self.path(digest).is_file() {
            protected.insert(digest.clone(), Instant::now());
        }
    }

    /// Removes a blob unless it was protected within `age`. Returns whether it is gone.
    pub(super) fn remove_unprotected(&self, digest: &Digest, age: Duration) -> io::Result<bool> {
        // locked to the end, so that no client learns meanwhile that the blob is here
        let mut protected = locked(&self.protected);
        if protected
            .get(digest)
            .is_some_and(|since| since.elapsed() < age)
        {
            return Ok(false);
        }
        protected.remove(digest);
        self.remove(digest)?;
        Ok(true)
    }

    /// Begins an upload. `algorithm` is the one that its digest most likely has;
    /// [`IncomingBlob::expect_algorithm`] may change it.
    pub(crate) fn begin(&self, algorithm: Algorithm) -> io::Result<IncomingBlob> {
        let file = self.disk.temporary_file()?;
        // other users of this machine may not read pushed content
        set_file_mode(file.as_file(), 0o600)?;
        let id = rand::generate(&SystemRandom::new()).map_err(io::Error::other)?;
        Ok(IncomingBlob {
            id: format!("{:032x}", u128::from_ne_bytes(id.expose())),
            file,
            hasher: Hasher::new(algorithm),
            algorithm,
            checksums: FrameChecksums::new(),
            share: QuotaShare::new(self.quota.clone()),
            size: 0,
        })
    }

    /// Gives a complete upload its final name. Fails if the upload does not have this digest.
    pub(crate) fn keep(
        &self,
        incoming: IncomingBlob,
        digest: &Digest,
    ) -> Result<(), WritableStoreError> {
        let IncomingBlob {
            mut file,
            hasher,
            algorithm,
            checksums,
            share,
            size,
            ..
        } = incoming;
        // the client names the digest at the end, possibly with another algorithm than at the
        // beginning
        let found = if algorithm == digest.algorithm() {
            hasher.finish()
        } else {
            file.as_file_mut().rewind()?;
            digest_of(file.as_file_mut(), digest.algorithm())?
        };
        if found != *digest {
            return Err(WritableStoreError::WrongDigest {
                found,
                expected: digest.clone(),
            });
        }
        // after a failed write that could not be undone, the file has bytes that were not hashed
        if file.as_file().metadata()?.len() != size {
            return Err(io::Error::other("a failed write could not be undone").into());
        }
        let path = self.path(digest);
        // an undamaged blob is kept, a damaged one is replaced
        if path.is_file() && matches!(self.verify(digest), Ok(true)) {
            self.protect(digest);
            // a sweep may have removed it before it was protected
            if path.is_file() {
                return Ok(());
            }
        }
        self.disk.sync(file.as_file())?;
        // a small blob has no checksums
        let checksums = (size > FRAME as u64).then(|| checksums.finish());
        if let Some(checksums) = &checksums {
            self.write_checksums(digest, checksums)?;
        }
        let naming = locked(&self.naming);
        // a client may have deleted the blob of a simultaneous upload, with its checksums
        if let Some(checksums) = &checksums
            && !self.checksums_path(digest).is_file()
        {
            self.write_checksums(digest, checksums)?;
        }
        // a replaced file frees its bytes: a damaged blob, or the blob of a simultaneous upload
        let replaced = self.disk.stat(digest).map_err(io::Error::other)?;
        // after its checksums: a blob without them could not be read
        DiskStore::rename(file, &path)?;
        share.keep(replaced.unwrap_or(0));
        drop(naming);
        self.protect(digest);
        Ok(())
    }

    fn write_checksums(&self, digest: &Digest, checksums: &[u8]) -> Result<(), WriteError> {
        self.disk.put_file(&self.checksums_path(digest), checksums)
    }

    /// Syncs the names of the blobs and their checksums. This must happen before the first name
    /// that refers to them is written.
    pub(super) fn sync_names(&self) -> Result<(), WriteError> {
        let frames = self.disk.dir().join("frames");
        for algorithm in Algorithm::ALL {
            self.disk.sync_folder(&frames.join(algorithm.as_str()))?;
        }
        self.disk.sync_names()
    }

    /// Copies a blob from a bundle, so that pushed images stay complete without the bundle.
    pub(crate) fn copy_from(
        &self,
        source: &dyn BlobRead,
        digest: &Digest,
    ) -> Result<(), WritableStoreError> {
        let mut incoming = self.begin(digest.algorithm())?;
        let mut reader = source.open(digest, 0).map_err(io::Error::other)?;
        for_each_chunk(&mut reader, |piece| incoming.write(piece))??;
        self.keep(incoming, digest)
    }

    /// Opens a blob that is longer than a frame.
    fn checked_reader(&self, digest: &Digest, offset: u64) -> io::Result<CheckedReader> {
        let checksums = fs::read(self.checksums_path(digest))?;
        let file = File::open(self.path(digest))?;
        CheckedReader::new(file, &checksums, &self.checks, offset)
    }

    fn try_open(&self, digest: &Digest, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let path = self.path(digest);
        if fs::metadata(&path)?.len() > FRAME as u64 {
            return Ok(Box::new(self.checked_reader(digest, offset)?));
        }
        // a small blob has no checksums: its digest is compared each time
        let bytes = fs::read(&path)?;
        if !digest.matches(&bytes) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut reader = io::Cursor::new(bytes);
        reader.set_position(offset);
        Ok(Box::new(reader))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.disk.path(digest)
    }

    fn checksums_path(&self, digest: &Digest) -> PathBuf {
        let frames = self.disk.dir().join("frames");
        frames.join(digest.algorithm().as_str()).join(digest.hex())
    }
}

/// The blobs in `disk` with the metadata of their files. Files with other names are ignored.
fn stored_blobs(disk: &DiskStore) -> io::Result<Vec<(Digest, Metadata)>> {
    let mut blobs = Vec::new();
    for (path, digest) in disk.blob_files()? {
        if let Some(digest) = digest
            // the file may have been removed since the folder was listed
            && let Some(metadata) = if_exists(fs::metadata(path))?
        {
            blobs.push((digest, metadata));
        }
    }
    Ok(blobs)
}

impl IncomingBlob {
    /// Sets the algorithm of the expected digest. If bytes were already hashed with another
    /// algorithm, the file is hashed again when it is complete.
    pub(crate) fn expect_algorithm(&mut self, algorithm: Algorithm) {
        if self.size == 0 && self.algorithm != algorithm {
            self.hasher = Hasher::new(algorithm);
            self.algorithm = algorithm;
        }
    }

    /// All bytes received so far.
    pub(crate) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.size as usize);
        let file = self.file.as_file_mut();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends bytes. If that fails, none of them count, and the upload can be resumed.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WritableStoreError> {
        // reserved before the write, so that parallel uploads together stay within the limit
        self.share.grow(bytes.len() as u64)?;
        if let Err(error) = self.file.write_all(bytes) {
            self.share.shrink(bytes.len() as u64);
            self.file.as_file().set_len(self.size)?;
            self.file.seek(SeekFrom::Start(self.size))?;
            return Err(error.into());
        }
        self.hasher.update(bytes);
        self.checksums.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }
}

impl BlobRead for WritableBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        self.disk.stat(digest)
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        self.try_open(digest, offset)
            .map_err(|source| content_error(digest, source))
    }
}

impl VerifiedRead for WritableBlobs {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        self.disk.file_stamps(digest)
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let path = self.path(digest);
        if fs::metadata(&path)?.len() > FRAME as u64 {
            self.checked_reader(digest, 0)?.verify(digest)
        } else {
            Ok(digest.matches(&fs::read(&path)?))
        }
    }

    fn as_file_runs(&self) -> Option<&dyn FileRunRead> {
        Some(self)
    }
}

impl FileRunRead for WritableBlobs {
    fn file_runs(&self, digest: &Digest, offset: u64) -> Result<Option<FileRuns>, ContentError> {
        // a small blob has no checksums: it is compared in memory instead
        if self.stat(digest)?.is_none_or(|size| size <= FRAME as u64) {
            return Ok(None);
        }
        match self.checked_reader(digest, offset) {
            Ok(reader) => Ok(Some(reader.runs())),
            Err(source) => Err(content_error(digest, source)),
        }
    }
}

fn content_error(digest: &Digest, source: io::Error) -> ContentError {
    let digest = digest.clone();
    match source.kind() {
        io::ErrorKind::NotFound => ContentError::Missing { digest },
        io::ErrorKind::InvalidData => ContentError::Damaged { digest },
        _ => ContentError::Read { digest, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn blobs(dir: &Path) -> WritableBlobs {
        WritableBlobs::open(DiskStore::open_pushed(dir).unwrap(), None).unwrap()
    }

    fn keep(
        blobs: &WritableBlobs,
        bytes: &[u8],
        digest: &Digest,
    ) -> Result<(), WritableStoreError> {
        let mut incoming = blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        blobs.keep(incoming, digest)
    }

    fn read(blobs: &WritableBlobs, digest: &Digest) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        blobs
            .open(digest, 0)
            .map_err(io::Error::other)?
            .read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn only_content_with_the_right_digest_is_kept_for_each_algorithm() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = blobs(dir.path());
        for digest in [
            Digest::sha256(b"abc"),
            Digest::compute(Algorithm::Sha512, b"abc"),
        ] {
            assert!(matches!(
                keep(&blobs, b"abd", &digest),
                Err(WritableStoreError::WrongDigest { .. })
            ));
            assert_eq!(blobs.stat(&digest).unwrap(), None);
            keep(&blobs, b"abc", &digest).unwrap();
            assert_eq!(read(&blobs, &digest).unwrap(), b"abc");
        }
        assert_eq!(
            fs::read_dir(dir.path().join(".landfall/temporary"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn damaged_content_is_not_sent_and_a_new_push_replaces_it() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = blobs(dir.path());
        let digest = Digest::sha256(b"abc");
        keep(&blobs, b"abc", &digest).unwrap();
        fs::write(dir.path().join(digest.layout_path()), b"abX").unwrap();
        assert!(read(&blobs, &digest).is_err());
        keep(&blobs, b"abc", &digest).unwrap();
        assert_eq!(read(&blobs, &digest).unwrap(), b"abc");
    }

    #[test]
    fn the_quota_counts_simultaneous_uploads_of_one_blob_once() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = blobs(dir.path());
        for number in 1..=20_u8 {
            let bytes = [number; 1000];
            let digest = Digest::sha256(&bytes);
            let all_received = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let mut incoming = blobs.begin(Algorithm::Sha256).unwrap();
                        incoming.write(&bytes).unwrap();
                        all_received.wait();
                        blobs.keep(incoming, &digest).unwrap();
                    });
                }
            });
            assert_eq!(blobs.quota.used(), 1000 * u64::from(number));
        }
    }
}
