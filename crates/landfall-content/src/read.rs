//! Content by digest that can be read from any offset.

use super::file_run::FileRuns;
use super::look::Look;
use super::pieces::digest_of;
use landfall_model::{Descriptor, Digest};
use std::io::{self, Read};

/// Content that can be read by digest from any offset. The disk store and the bundle implement it,
/// so that push, serve and pack need not know which one they read.
pub trait BlobRead: Send + Sync {
    /// Size in bytes, or `None` where it is not there.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError>;

    /// The content from `offset` on. What is read is checked against hashes that were verified
    /// when the content came in; a mismatch is a read error of kind `InvalidData`.
    ///
    /// # Errors
    /// When it is not there, or cannot be opened.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError>;

    /// The whole content for a receiver that accepts nothing before the end, such as an upload: the
    /// last bytes are held back if the content is wrong; those before may be wrong.
    ///
    /// # Errors
    /// As [`BlobRead::open`].
    fn open_whole(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentError> {
        self.open(digest, 0)
    }

    /// How the files that hold the content look. As long as they look so, what was once hashed
    /// there is still there. Empty for content that no file holds.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn looks(&self, _digest: &Digest) -> Result<Vec<Look>, ContentError> {
        Ok(Vec::new())
    }

    /// The content from `offset` on, for a caller that hashed all of it when its files looked as
    /// they do now. Only decay is looked for, by a checksum, and no more memory is held than a
    /// reader needs.
    ///
    /// # Errors
    /// As [`BlobRead::open`].
    fn open_known(
        &self,
        digest: &Digest,
        offset: u64,
    ) -> Result<Box<dyn Read + Send>, ContentError> {
        self.open(digest, offset)
    }

    /// As [`BlobRead::open_known`], as the files that have the bytes. `None` where they lie in none
    /// as they are.
    ///
    /// # Errors
    /// As [`BlobRead::open`]; and an item is an error where reading would be one.
    fn file_runs(&self, _digest: &Digest, _offset: u64) -> Result<Option<FileRuns>, ContentError> {
        Ok(None)
    }

    /// Whether the content comes over a network, so that hashing it before it is handed on brings
    /// all of it twice.
    fn is_remote(&self) -> bool {
        false
    }

    /// A URL at which anybody can read the content for a while. `None` where there is none.
    ///
    /// # Errors
    /// When it is not there, or none can be made.
    fn link(&self, _digest: &Digest) -> Result<Option<String>, ContentError> {
        Ok(None)
    }

    /// Whether the content has its digest, and what [`BlobRead::open_known`] compares is right. All
    /// of it is read.
    ///
    /// # Errors
    /// When it cannot be read; of kind `InvalidData` where its bytes are wrong.
    fn is_sound(&self, digest: &Digest) -> io::Result<bool> {
        let mut reader = self.open_known(digest, 0).map_err(io::Error::other)?;
        Ok(digest_of(&mut reader, digest.algorithm())? == *digest)
    }

    /// The whole of a small piece, such as a manifest, checked against its digest and size.
    ///
    /// # Errors
    /// As [`BlobRead::open`]; and when size or digest differ.
    fn read(&self, descriptor: &Descriptor) -> Result<Vec<u8>, ContentError> {
        let digest = &descriptor.digest;
        let mut bytes = Vec::new();
        self.open(digest, 0)?
            .take(descriptor.size + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| ContentError::Read {
                digest: digest.clone(),
                source,
            })?;
        if bytes.len() as u64 != descriptor.size || !digest.matches(&bytes) {
            return Err(ContentError::Damaged {
                digest: digest.clone(),
            });
        }
        Ok(bytes)
    }
}

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// It is not there.
    #[error("{digest} is not there")]
    Missing {
        /// What was asked for.
        digest: Digest,
    },
    /// It is there, but with other bytes.
    #[error("{digest} is damaged: its bytes do not have this digest")]
    Damaged {
        /// What was asked for.
        digest: Digest,
    },
    /// The system refused.
    #[error("cannot read {digest}: {source}")]
    Read {
        /// What was asked for.
        digest: Digest,
        /// The system's answer.
        source: io::Error,
    },
}
