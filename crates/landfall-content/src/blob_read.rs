//! Reading content by digest, from any offset.

use landfall_model::{Descriptor, Digest};
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
