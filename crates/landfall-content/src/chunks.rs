//! Reads and hashes a reader to its end, chunk by chunk.

use landfall_model::{Algorithm, Digest, Hasher};
use std::io::{self, ErrorKind, Read};

/// The size of the buffer in bytes.
const CHUNK_SIZE: usize = 256 << 10;

/// Reads `reader` to its end and calls `each` with every chunk.
///
/// # Errors
/// If a read or `each` fails.
pub fn for_each_chunk<E: From<io::Error>>(
    reader: &mut impl Read,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => each(&buffer[..count])?,
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

/// Reads `reader` to its end and returns the digest of the bytes.
///
/// # Errors
/// If a read fails.
pub fn digest_of(reader: &mut impl Read, algorithm: Algorithm) -> io::Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    for_each_chunk(reader, |chunk| {
        hasher.update(chunk);
        Ok::<_, io::Error>(())
    })?;
    Ok(hasher.finish())
}
