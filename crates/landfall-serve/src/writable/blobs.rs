//! Blobs that were pushed: uploads in progress, and content by digest.

use super::disk::{list, optional, persist, write};
use super::error::KeepError;
use super::frame_sums::{CheckedReader, FRAME, FrameSums};
use super::room::{Room, Share};
use landfall_content::{
    BlobRead, ContentError, FileRunRead, FileRuns, FileStamp, RecentChecks, VerifiedRead,
    digest_of, for_each_chunk,
};
use landfall_model::{Algorithm, Digest, Hasher};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// The blobs in the folder of `--writable`.
pub(in super::super) struct WritableBlobs {
    dir: PathBuf,
    room: Arc<Room>,
    /// Of frames that were checked before, by the looks of their files.
    checks: Arc<RecentChecks<FileStamp>>,
    /// When a client was told last that a blob is here: it may count on that in a push.
    told: Mutex<HashMap<Digest, Instant>>,
}

/// An upload in progress.
pub(in super::super) struct IncomingBlob {
    file: NamedTempFile,
    hasher: Hasher,
    algorithm: Algorithm,
    sums: FrameSums,
    share: Share,
    /// How many bytes are here.
    pub(in super::super) size: u64,
}

impl WritableBlobs {
    /// The blobs below `dir`, which may have `most` bytes.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(super) fn open(dir: &Path, most: Option<u64>) -> io::Result<WritableBlobs> {
        let mut blobs = WritableBlobs {
            dir: dir.into(),
            room: Arc::new(Room::new(0, most)),
            checks: Arc::new(RecentChecks::default()),
            told: Mutex::default(),
        };
        let used = blobs.all()?.iter().map(|(_, data)| data.len()).sum();
        blobs.room = Arc::new(Room::new(used, most));
        Ok(blobs)
    }

    /// How many bytes there are, and may be.
    pub(super) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// All blobs, and their files.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(super) fn all(&self) -> io::Result<Vec<(Digest, Metadata)>> {
        let mut all = Vec::new();
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let folder = self.dir.join("blobs").join(algorithm.as_str());
            for name in list(&folder)? {
                let digest = format!("{}:{name}", algorithm.as_str()).parse::<Digest>();
                if let (Ok(digest), Some(data)) =
                    (digest, optional(fs::metadata(folder.join(name)))?)
                {
                    all.push((digest, data));
                }
            }
        }
        Ok(all)
    }

    /// Removes a blob. Returns whether it was there.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub(super) fn remove(&self, digest: &Digest) -> io::Result<bool> {
        let path = self.dir.join(digest.layout_path());
        let Some(data) = optional(fs::metadata(&path))? else {
            return Ok(false);
        };
        let removed = optional(fs::remove_file(&path))?.is_some();
        if removed {
            self.room.give_back(data.len());
            self.checks.forget(&FileStamp::of(&data));
        }
        optional(fs::remove_file(self.frames_path(digest)))?;
        Ok(removed)
    }

    /// Remembers that a client is told that this blob is here, where it is.
    pub(in super::super) fn tell(&self, digest: &Digest) {
        let mut told = self.told();
        if self.dir.join(digest.layout_path()).is_file() {
            told.insert(digest.clone(), Instant::now());
        }
    }

    /// Removes a blob, unless a client was told within `age` that it is here. Returns whether it is
    /// gone.
    ///
    /// # Errors
    /// When the disk cannot be written.
    pub(super) fn remove_untold(&self, digest: &Digest, age: Duration) -> io::Result<bool> {
        // held to the end, so that nobody is told meanwhile
        let mut told = self.told();
        if told.get(digest).is_some_and(|when| when.elapsed() < age) {
            return Ok(false);
        }
        told.remove(digest);
        self.remove(digest)?;
        Ok(true)
    }

    fn told(&self) -> MutexGuard<'_, HashMap<Digest, Instant>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of files without a final name yet.
    pub(super) fn incoming(&self) -> PathBuf {
        self.dir.join("incoming")
    }

    /// Begins an upload. Its digest is probably by `algorithm`; [`IncomingBlobBlob::expect`] may
    /// change that.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(in super::super) fn begin(&self, algorithm: Algorithm) -> io::Result<IncomingBlob> {
        let file = tempfile::Builder::new()
            .prefix("")
            .rand_bytes(24)
            .tempfile_in(self.incoming())?;
        let (hasher, share) = (Hasher::new(algorithm), Share::of(self.room.clone()));
        Ok(IncomingBlob {
            file,
            hasher,
            algorithm,
            sums: FrameSums::new(),
            share,
            size: 0,
        })
    }

    /// Gives an upload its final name if it has this digest.
    ///
    /// # Errors
    /// When the digest differs, or the disk does not take it.
    pub(in super::super) fn keep(
        &self,
        incoming: IncomingBlob,
        digest: &Digest,
    ) -> Result<(), KeepError> {
        let IncomingBlob {
            mut file,
            hasher,
            algorithm,
            sums,
            share,
            size,
        } = incoming;
        let found = match algorithm == digest.algorithm() {
            true => hasher.finish(),
            false => hash_again(file.as_file_mut(), digest.algorithm())?,
        };
        if found != *digest {
            return Err(KeepError::Digest {
                found,
                expected: digest.clone(),
            });
        }
        let place = self.dir.join(digest.layout_path());
        if place.is_file() && matches!(self.verify(digest), Ok(true)) {
            self.tell(digest);
            return Ok(());
        }
        file.as_file().sync_all()?;
        if size > FRAME as u64 {
            write(&self.incoming(), &self.frames_path(digest), &sums.finish())?;
        }
        let instead = optional(fs::metadata(&place))?.map_or(0, |data| data.len());
        persist(file, &place)?;
        share.keep(instead);
        self.tell(digest);
        Ok(())
    }

    /// Copies a blob from a bundle, so that what was pushed stays whole without the bundle.
    ///
    /// # Errors
    /// When the blob cannot be read or kept.
    pub(in super::super) fn adopt(
        &self,
        from: &dyn BlobRead,
        digest: &Digest,
    ) -> Result<(), KeepError> {
        let mut incoming = self.begin(digest.algorithm())?;
        let mut reader = from.open(digest, 0).map_err(io::Error::other)?;
        for_each_chunk(&mut reader, |piece| incoming.write(piece))?;
        self.keep(incoming, digest)
    }

    /// Reads a blob that is longer than a frame.
    fn checked_reader(&self, digest: &Digest, offset: u64) -> io::Result<CheckedReader> {
        let sums = fs::read(self.frames_path(digest))?;
        let file = File::open(self.dir.join(digest.layout_path()))?;
        CheckedReader::new(file, &sums, &self.checks, offset)
    }

    fn frames_path(&self, digest: &Digest) -> PathBuf {
        self.dir
            .join("frames")
            .join(digest.algorithm().as_str())
            .join(digest.hex())
    }
}

impl IncomingBlob {
    /// The name of its file: long and random, so that it serves as the id of the upload.
    pub(in super::super) fn id(&self) -> String {
        self.file
            .path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Makes `algorithm` the one of the digest. Bytes that were hashed by another are hashed again
    /// at the end.
    pub(in super::super) fn expect(&mut self, algorithm: Algorithm) {
        if self.size == 0 && self.algorithm != algorithm {
            self.hasher = Hasher::new(algorithm);
            self.algorithm = algorithm;
        }
    }

    /// All bytes that are here.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(in super::super) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.size as usize);
        let file = self.file.as_file_mut();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// When there is no room for them, or the disk does not take them; then none of them counts.
    pub(in super::super) fn write(&mut self, bytes: &[u8]) -> Result<(), KeepError> {
        self.share.grow(bytes.len() as u64)?;
        if let Err(error) = self.file.write_all(bytes) {
            self.share.shrink(bytes.len() as u64);
            self.file.as_file().set_len(self.size)?;
            self.file.seek(SeekFrom::Start(self.size))?;
            return Err(error.into());
        }
        self.hasher.update(bytes);
        self.sums.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }
}

impl BlobRead for WritableBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let found = optional(fs::metadata(self.dir.join(digest.layout_path())));
        let found = found.map_err(|source| ContentError::Read {
            digest: digest.clone(),
            source,
        })?;
        Ok(found.map(|found| found.len()))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let wrong = |source| content_error(digest, source);
        let path = self.dir.join(digest.layout_path());
        if fs::metadata(&path).map_err(wrong)?.len() <= FRAME as u64 {
            let bytes = fs::read(&path).map_err(wrong)?;
            if !digest.matches(&bytes) {
                return Err(ContentError::Damaged {
                    digest: digest.clone(),
                });
            }
            let mut reader = io::Cursor::new(bytes);
            reader.set_position(offset);
            return Ok(Box::new(reader));
        }
        Ok(Box::new(
            self.checked_reader(digest, offset).map_err(wrong)?,
        ))
    }
}

impl VerifiedRead for WritableBlobs {
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        let data = fs::metadata(self.dir.join(digest.layout_path()));
        let data = data.map_err(|source| ContentError::Read {
            digest: digest.clone(),
            source,
        })?;
        Ok(vec![FileStamp::of(&data)])
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let path = self.dir.join(digest.layout_path());
        if fs::metadata(&path)?.len() <= FRAME as u64 {
            Ok(digest.matches(&fs::read(&path)?))
        } else {
            self.checked_reader(digest, 0)?.is_sound(digest)
        }
    }

    fn as_file_runs(&self) -> Option<&dyn FileRunRead> {
        Some(self)
    }
}

impl FileRunRead for WritableBlobs {
    fn file_runs(&self, digest: &Digest, offset: u64) -> Result<Option<FileRuns>, ContentError> {
        if self.stat(digest)?.is_none_or(|size| size <= FRAME as u64) {
            return Ok(None);
        }
        let reader = self.checked_reader(digest, offset);
        reader
            .map(|reader| Some(reader.runs()))
            .map_err(|source| content_error(digest, source))
    }
}

fn content_error(digest: &Digest, source: io::Error) -> ContentError {
    match source.kind() {
        io::ErrorKind::NotFound => ContentError::Missing {
            digest: digest.clone(),
        },
        io::ErrorKind::InvalidData => ContentError::Damaged {
            digest: digest.clone(),
        },
        _ => ContentError::Read {
            digest: digest.clone(),
            source,
        },
    }
}

fn hash_again(file: &mut File, algorithm: Algorithm) -> io::Result<Digest> {
    file.rewind()?;
    digest_of(file, algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs(dir: &Path) -> WritableBlobs {
        fs::create_dir_all(dir.join("incoming")).unwrap();
        WritableBlobs::open(dir, None).unwrap()
    }

    fn keep(blobs: &WritableBlobs, bytes: &[u8], digest: &Digest) -> Result<(), KeepError> {
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
    fn only_content_with_the_digest_is_kept_whatever_the_algorithm() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = blobs(dir.path());
        for digest in [
            Digest::sha256(b"abc"),
            Digest::compute(Algorithm::Sha512, b"abc"),
        ] {
            assert!(matches!(
                keep(&blobs, b"abd", &digest),
                Err(KeepError::Digest { .. })
            ));
            assert_eq!(blobs.stat(&digest).unwrap(), None);
            keep(&blobs, b"abc", &digest).unwrap();
            assert_eq!(read(&blobs, &digest).unwrap(), b"abc");
        }
        assert_eq!(
            fs::read_dir(dir.path().join("incoming")).unwrap().count(),
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
}
