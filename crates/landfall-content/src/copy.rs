//! Copies a whole blob to a receiver, chunk by chunk.

use super::chunks::for_each_chunk;
use super::{BlobRead, ContentError};
use landfall_model::{Digest, Hasher};
use std::io;

/// Why a blob cannot be copied.
#[derive(Debug)]
pub enum CopyError {
    /// The blob cannot be read, or its bytes are wrong.
    Content(ContentError),
    /// The receiver of the chunks failed.
    Write(io::Error),
}

/// Why a chunk cannot be copied.
enum ChunkError {
    Read(io::Error),
    Write(io::Error),
}

impl From<io::Error> for ChunkError {
    fn from(error: io::Error) -> ChunkError {
        ChunkError::Read(error)
    }
}

/// Copies a blob to `write`, at most `size` bytes, and checks its digest at the end. After an
/// error, the bytes that `write` has received may be wrong.
///
/// # Errors
/// If the blob cannot be read, has wrong bytes or another size, or if `write` fails.
pub fn copy_checked(
    blobs: &dyn BlobRead,
    digest: &Digest,
    size: u64,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), CopyError> {
    let mut hasher = Hasher::new(digest.algorithm());
    let mut remaining = size;
    let mut reader = blobs.open(digest, 0).map_err(CopyError::Content)?;
    let copied = for_each_chunk(&mut reader, |chunk| {
        remaining = remaining
            .checked_sub(chunk.len() as u64)
            // checked before the chunk is written, so that the receiver never gets more than `size`
            // bytes
            .ok_or_else(|| io::Error::other("it is longer than its expected size"))?;
        hasher.update(chunk);
        write(chunk).map_err(ChunkError::Write)
    });
    match copied {
        Ok(()) => {}
        Err(ChunkError::Read(source)) => {
            return Err(CopyError::Content(ContentError::read(digest, source)));
        }
        Err(ChunkError::Write(error)) => return Err(CopyError::Write(error)),
    }
    if remaining > 0 || hasher.finish() != *digest {
        return Err(CopyError::Content(ContentError::damaged(digest)));
    }
    Ok(())
}
