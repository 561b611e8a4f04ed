//! Copying the whole of a blob to a receiver that takes it piece by piece.

use super::chunks::for_each_chunk;
use super::{BlobRead, ContentError};
use landfall_model::{Digest, Hasher};
use std::io;

/// Why a blob is not copied.
#[derive(Debug)]
pub enum CopyError {
    /// It cannot be read, or has other bytes.
    Content(ContentError),
    /// The receiver refused.
    Write(io::Error),
}

/// Why the copying of one piece failed.
enum ChunkError {
    Read(io::Error),
    Write(io::Error),
}

impl From<io::Error> for ChunkError {
    fn from(error: io::Error) -> ChunkError {
        ChunkError::Read(error)
    }
}

/// Hands a blob of `size` bytes to `to`, never more than these, and checks its digest. Where that
/// fails, what `to` got may be wrong.
///
/// # Errors
/// When it cannot be read or has other bytes, and when `to` fails.
pub fn copy_checked(
    blobs: &dyn BlobRead,
    digest: &Digest,
    size: u64,
    mut to: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), CopyError> {
    let (mut hasher, mut left) = (Hasher::new(digest.algorithm()), size);
    let mut reader = blobs.open(digest, 0).map_err(CopyError::Content)?;
    let copied = for_each_chunk(&mut reader, |piece| {
        left = left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| io::Error::other("it is too long"))?;
        hasher.update(piece);
        to(piece).map_err(ChunkError::Write)
    });
    copied.map_err(|step| match step {
        ChunkError::Read(source) => CopyError::Content(ContentError::Read {
            digest: digest.clone(),
            source,
        }),
        ChunkError::Write(error) => CopyError::Write(error),
    })?;
    if left > 0 || hasher.finish() != *digest {
        return Err(CopyError::Content(ContentError::Damaged {
            digest: digest.clone(),
        }));
    }
    Ok(())
}
