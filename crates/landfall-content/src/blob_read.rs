//! Reading content by digest, from any offset.

use crate::atomic_file::{FileRuns, FileStamp};
use landfall_model::{Descriptor, Digest, has_digest};
use std::io::{self, Read};

/// Content that is read by digest, from any offset. The disk store and the bundle implement it, so
/// that push, serve and pack need not know which of them they read.
pub trait BlobRead: Send + Sync {
    /// Returns the size of the blob in bytes, or `None` if it is missing.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError>;

    /// Whether a copy of the blob with its size is present. The bytes are verified when they are
    /// read.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn holds(&self, blob: &Descriptor) -> Result<bool, ContentError> {
        Ok(self.stat(&blob.digest)? == Some(blob.size))
    }

    /// Opens the blob at `offset`. Before any byte is returned, a store on disk hashes the blob if
    /// it changed since its last verification; a bundle compares the hash of each frame. Damage
    /// that is found during a read is an error of kind `InvalidData`.
    ///
    /// # Errors
    /// If the blob is missing or cannot be opened.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError>;

    /// Opens the whole blob for a receiver that uses the content only after it is complete, such as
    /// an upload. If the digest is wrong, the read fails before the last bytes, but wrong bytes may
    /// have been returned before.
    ///
    /// # Errors
    /// If the blob is missing or cannot be opened.
    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        self.open(digest, 0)
    }

    /// Opens the copy of the blob with this number, counted from 0; `None` if there are fewer
    /// copies. The blob is read from that copy alone, so a reader that finds wrong bytes can begin
    /// again with the next copy.
    ///
    /// # Errors
    /// If this copy cannot be opened.
    fn open_copy(
        &self,
        digest: &Digest,
        number: usize,
    ) -> Result<Option<Box<dyn Read + Send>>, ContentError> {
        match number {
            0 => self.open_whole(digest).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads all of a small blob, such as a manifest, into memory and checks its size and digest.
    ///
    /// # Errors
    /// If the blob is missing, cannot be read, or its size or digest differ.
    fn read(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ContentError> {
        let digest = &descriptor.digest;
        let mut bytes = Vec::new();
        self.open(digest, 0)?
            // one byte more, to notice a blob that is longer than its descriptor says
            .take(descriptor.size + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| ContentError::read(digest, source))?;
        if bytes.len() as u64 != descriptor.size || !digest.matches(&bytes) {
            return Err(ContentError::damaged(digest));
        }
        Ok(bytes)
    }
}

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// No storage has the blob.
    #[error("{digest} is missing")]
    Missing {
        /// The digest that was requested.
        digest: Digest,
    },
    /// The stored bytes do not have the digest under which they are stored.
    #[error("{digest} is damaged: its bytes do not have this digest")]
    Damaged {
        /// The digest that was requested.
        digest: Digest,
    },
    /// The blob exists, but reading it failed.
    #[error("cannot read {digest}: {source}")]
    Read {
        /// The digest that was requested.
        digest: Digest,
        /// The error of the operating system or the object store.
        source: io::Error,
    },
}

impl ContentError {
    /// Returns the error for a missing blob.
    pub fn missing(digest: &Digest) -> ContentError {
        ContentError::Missing {
            digest: digest.clone(),
        }
    }

    /// Returns the error for a blob whose bytes are wrong.
    pub fn damaged(digest: &Digest) -> ContentError {
        ContentError::Damaged {
            digest: digest.clone(),
        }
    }

    /// Returns the error for a blob that cannot be read.
    pub fn read(digest: &Digest, source: impl Into<io::Error>) -> ContentError {
        ContentError::Read {
            digest: digest.clone(),
            source: source.into(),
        }
    }
}

// Reading content for clients: it is verified once, and read cheaply afterwards.

/// Content that is verified once and then read many times, as a server reads it. A verification is
/// valid as long as the file stamps stay the same.
pub trait VerifiedRead: BlobRead {
    /// Returns the stamps of the files that hold the blob, or none if it is not in a file.
    ///
    /// # Errors
    /// If the blob is missing, or a file cannot be examined.
    fn file_stamps(&self, digest: &Digest) -> Result<Vec<FileStamp>, ContentError>;

    /// Reads the whole blob. Returns whether its digest and the checksums that
    /// [`open_verified`](Self::open_verified) compares are right.
    ///
    /// # Errors
    /// If the blob cannot be read; of kind `InvalidData` if its stored form is damaged.
    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let mut reader = self.open_verified(digest, 0).map_err(io::Error::other)?;
        has_digest(&mut reader, digest)
    }

    /// Opens, at `offset`, a blob that [`verify`](Self::verify) accepted, and whose file stamps
    /// have not changed since then. Compares only checksums, to notice bit rot, and does not buffer
    /// whole frames.
    ///
    /// # Errors
    /// If the blob is missing or cannot be opened.
    fn open_verified(
        &self,
        digest: &Digest,
        offset: u64,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        self.open(digest, offset)
    }

    /// Whether the content is read over a network. If so, a blob that is verified before it is sent
    /// is downloaded twice.
    fn is_remote(&self) -> bool {
        false
    }

    /// This content as runs of files that the kernel can send, if it has any.
    fn as_file_runs(&self) -> Option<&dyn FileRunRead> {
        None
    }

    /// This content as URLs that clients can download from directly, if it has any.
    fn as_presigned_urls(&self) -> Option<&dyn PresignedUrls> {
        None
    }
}

/// Content that is stored in files without another encoding, so that `sendfile` can send it.
pub trait FileRunRead {
    /// Returns the runs of files that hold a verified blob from `offset` on, or `None` if the blob
    /// is stored in another form, such as compressed. Each run is checked as in
    /// [`VerifiedRead::open_verified`] before it is returned.
    ///
    /// # Errors
    /// If the blob is missing or cannot be opened.
    fn file_runs(&self, digest: &Digest, offset: u64) -> Result<Option<FileRuns>, ContentError>;
}

/// Content that clients can download from an object store themselves.
pub trait PresignedUrls {
    /// Returns a URL from which anybody can download the blob for a limited time, or `None` if the
    /// blob is not in an object store.
    ///
    /// # Errors
    /// If the blob is missing, or the URL cannot be signed.
    fn presigned_url(&self, digest: &Digest) -> Result<Option<String>, ContentError>;
}
