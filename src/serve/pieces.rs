//! The digest of content that is read to its end.

pub(super) use crate::content::each_piece;
use crate::model::{Algorithm, Digest, Hasher};
use std::io::{self, Read};

/// The digest of everything that `reader` still has.
///
/// # Errors
/// When a read fails.
pub(super) fn digest_of(reader: &mut impl Read, algorithm: Algorithm) -> io::Result<Digest> {
    let mut hasher = Hasher::new(algorithm);
    each_piece(reader, |piece| {
        hasher.update(piece);
        Ok::<_, io::Error>(())
    })?;
    Ok(hasher.finish())
}
