//! Blobs that were pushed: uploads in progress, and content by digest.

use super::disk::{optional, persist, write};
use super::frame_sums::{CheckedReader, FRAME, FrameSums};
use crate::content::{BlobRead, ContentError};
use crate::model::{Algorithm, Digest, Hasher};
use crate::serve::pieces::{digest_of, each_piece};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The blobs in the folder of `--writable`.
pub(in super::super) struct WritableBlobs {
    dir: PathBuf,
}

/// An upload in progress.
pub(in super::super) struct IncomingBlob {
    file: NamedTempFile,
    hasher: Hasher,
    algorithm: Algorithm,
    sums: FrameSums,
    /// How many bytes are here.
    pub(in super::super) size: u64,
}

/// Why an upload is not kept.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum KeepError {
    /// Its digest differs from the one that the client named.
    #[error("what came in is {found}, not {expected}")]
    Digest {
        /// The digest of the bytes.
        found: Digest,
        /// The digest that the client named.
        expected: Digest,
    },
    /// The disk does not take it.
    #[error("the folder of --writable cannot be used: {0}")]
    Disk(#[from] io::Error),
}

impl WritableBlobs {
    /// The blobs below `dir`.
    pub(super) fn new(dir: &Path) -> WritableBlobs {
        WritableBlobs { dir: dir.into() }
    }

    /// The folder of files without a final name yet.
    pub(super) fn incoming(&self) -> PathBuf {
        self.dir.join("incoming")
    }

    /// Begins an upload. Its digest is probably by `algorithm`; [`IncomingBlobBlob::expect`] may change that.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(in super::super) fn begin(&self, algorithm: Algorithm) -> io::Result<IncomingBlob> {
        let file = tempfile::Builder::new().prefix("").rand_bytes(24).tempfile_in(self.incoming())?;
        Ok(IncomingBlob { file, hasher: Hasher::new(algorithm), algorithm, sums: FrameSums::new(), size: 0 })
    }

    /// Gives an upload its final name if it has this digest.
    ///
    /// # Errors
    /// When the digest differs, or the disk does not take it.
    pub(in super::super) fn keep(&self, incoming: IncomingBlob, digest: &Digest) -> Result<(), KeepError> {
        let IncomingBlob { mut file, hasher, algorithm, sums, size } = incoming;
        let found = match algorithm == digest.algorithm() {
            true => hasher.finish(),
            false => hash_again(file.as_file_mut(), digest.algorithm())?,
        };
        if found != *digest {
            return Err(KeepError::Digest { found, expected: digest.clone() });
        }
        let place = self.dir.join(digest.layout_path());
        if place.is_file() && self.is_whole(digest) {
            return Ok(());
        }
        file.as_file().sync_all()?;
        if size > FRAME as u64 {
            write(&self.incoming(), &self.frames_path(digest), &sums.finish())?;
        }
        persist(file, &place)?;
        Ok(())
    }

    /// Copies a blob from a bundle, so that what was pushed stays whole without the bundle.
    ///
    /// # Errors
    /// When the blob cannot be read or kept.
    pub(in super::super) fn adopt(&self, from: &dyn BlobRead, digest: &Digest) -> Result<(), KeepError> {
        let mut incoming = self.begin(digest.algorithm())?;
        let mut reader = from.open(digest, 0).map_err(io::Error::other)?;
        each_piece(&mut reader, |piece| incoming.write(piece))?;
        self.keep(incoming, digest)
    }

    /// Whether the blob on disk still has its digest. A new push replaces a damaged one.
    fn is_whole(&self, digest: &Digest) -> bool {
        let read = self.open(digest, 0).map(|mut reader| io::copy(&mut reader, &mut io::sink()));
        matches!(read, Ok(Ok(_)))
    }

    fn frames_path(&self, digest: &Digest) -> PathBuf {
        self.dir.join("frames").join(digest.algorithm().as_str()).join(digest.hex())
    }
}

impl IncomingBlob {
    /// The name of its file: long and random, so that it serves as the id of the upload.
    pub(in super::super) fn id(&self) -> String {
        self.file.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Makes `algorithm` the one of the digest. Bytes that were hashed by another are hashed again at the end.
    pub(in super::super) fn expect(&mut self, algorithm: Algorithm) {
        if self.size == 0 && self.algorithm != algorithm {
            self.hasher = Hasher::new(algorithm);
            self.algorithm = algorithm;
        }
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// When the disk does not take them; then none of them counts.
    pub(in super::super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            self.file.as_file().set_len(self.size)?;
            self.file.seek(SeekFrom::Start(self.size))?;
            return Err(error);
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
        let found = found.map_err(|source| ContentError::Read { digest: digest.clone(), source })?;
        Ok(found.map(|found| found.len()))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let wrong = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ContentError::Missing { digest: digest.clone() },
            io::ErrorKind::InvalidData => ContentError::Damaged { digest: digest.clone() },
            _ => ContentError::Read { digest: digest.clone(), source },
        };
        let path = self.dir.join(digest.layout_path());
        if fs::metadata(&path).map_err(wrong)?.len() <= FRAME as u64 {
            let bytes = fs::read(&path).map_err(wrong)?;
            if !digest.matches(&bytes) {
                return Err(ContentError::Damaged { digest: digest.clone() });
            }
            let mut reader = io::Cursor::new(bytes);
            reader.set_position(offset);
            return Ok(Box::new(reader));
        }
        let sums = fs::read(self.frames_path(digest)).map_err(wrong)?;
        let checked = CheckedReader::open(&sums, offset, |start| {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(start))?;
            Ok(file)
        });
        Ok(Box::new(checked.map_err(wrong)?))
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
        WritableBlobs::new(dir)
    }

    fn keep(blobs: &WritableBlobs, bytes: &[u8], digest: &Digest) -> Result<(), KeepError> {
        let mut incoming = blobs.begin(Algorithm::Sha256).unwrap();
        incoming.write(bytes).unwrap();
        blobs.keep(incoming, digest)
    }

    fn read(blobs: &WritableBlobs, digest: &Digest) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        blobs.open(digest, 0).map_err(io::Error::other)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn only_content_with_the_digest_is_kept_whatever_the_algorithm() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = blobs(dir.path());
        for digest in [Digest::sha256(b"abc"), Digest::of(Algorithm::Sha512, b"abc")] {
            assert!(matches!(keep(&blobs, b"abd", &digest), Err(KeepError::Digest { .. })));
            assert_eq!(blobs.stat(&digest).unwrap(), None);
            keep(&blobs, b"abc", &digest).unwrap();
            assert_eq!(read(&blobs, &digest).unwrap(), b"abc");
        }
        assert_eq!(fs::read_dir(dir.path().join("incoming")).unwrap().count(), 0);
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
