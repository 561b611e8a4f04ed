//! Content that is read to its end, piece by piece.

use landfall_model::{Algorithm, Digest, Hasher};
use std::io::{self, ErrorKind, Read};

/// How many bytes are read at once.
const PIECE: usize = 256 << 10;

/// Reads `reader` to its end and hands each piece to `each`.
///
/// # Errors
/// When a read fails, or `each` does.
pub fn for_each_chunk<E: From<io::Error>>(
    reader: &mut impl Read,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut piece = vec![0; PIECE];
    loop {
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => each(&piece[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads `reader` to its end and returns whether the bytes have this digest.
///
/// # Errors
/// If a read fails.
pub fn has_digest(reader: &mut impl Read, digest: &Digest) -> io::Result<bool> {
    Ok(digest_of(reader, digest.algorithm())? == *digest)
}

/// The digest of everything that `reader` still has.
///
/// # Errors
/// When a read fails.
pub fn digest_of(reader: &mut impl Read, algorithm: Algorithm) -> io::Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    for_each_chunk(reader, |piece| {
        hasher.update(piece);
        Ok::<_, io::Error>(())
    })?;
    Ok(hasher.finish())
}
