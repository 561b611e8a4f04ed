//! Reading content for clients: it is verified once, and read cheaply afterwards.

use super::chunks::has_digest;
use super::file_run::FileRuns;
use super::file_stamp::FileStamp;
use super::{BlobRead, ContentError};
use landfall_model::Digest;
use std::io::{self, Read};

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
