//! Hashes content that is read or written piece by piece.

use crate::{Algorithm, Digest, Hasher};
use std::io::{self, ErrorKind, Read, Write};

/// The size of the buffer in bytes.
const CHUNK_SIZE: usize = 256 << 10;

/// Reads `reader` to its end and calls `each` with every chunk. The inner result is that of `each`,
/// whose first error ends the reading.
///
/// # Errors
/// If a read fails.
pub fn for_each_chunk<E>(
    reader: &mut impl Read,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> io::Result<Result<(), E>> {
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(Ok(())),
            Ok(count) => {
                if let Err(error) = each(&buffer[..count]) {
                    return Ok(Err(error));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Like [`for_each_chunk`], for an `each` that cannot fail.
///
/// # Errors
/// If a read fails.
pub fn read_chunks(reader: &mut impl Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    for_each_chunk(reader, |chunk| {
        each(chunk);
        Ok::<_, std::convert::Infallible>(())
    })
    .map(|Ok(())| ())
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
    read_chunks(reader, |chunk| hasher.update(chunk))?;
    Ok(hasher.finish())
}

/// A reader or writer whose bytes are hashed as they pass.
pub struct HashedStream<S> {
    stream: S,
    hasher: Hasher,
}

impl<S> HashedStream<S> {
    /// Hashes the bytes that pass through `stream` from now on.
    pub fn new(stream: S, algorithm: Algorithm) -> HashedStream<S> {
        HashedStream {
            stream,
            hasher: Hasher::new(algorithm),
        }
    }

    /// Returns the stream and the digest of all bytes that passed.
    pub fn finish(self) -> (S, Digest) {
        (self.stream, self.hasher.finish())
    }
}

impl<S: Read> Read for HashedStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

impl<S: Write> Write for HashedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Reads a blob of a known size from its beginning and hashes it. If the digest is wrong, the read
/// fails instead of returning the last bytes.
///
/// A reader that verifies each piece before it returns the piece holds a piece back instead. After
/// an error, the reader is at its end.
pub struct DigestCheckedReader<R, F> {
    reader: R,
    /// `None` after the digest was compared.
    hasher: Option<Hasher>,
    digest: Digest,
    remaining: u64,
    /// Whether a read has failed. Nothing is returned after that.
    has_failed: bool,
    wrong_digest: F,
}

impl<R: Read, F: Fn(&R) -> io::Error> DigestCheckedReader<R, F> {
    /// Reads the `size` bytes of `reader`. If they do not have the digest, the read fails with
    /// what `wrong_digest` returns.
    pub fn new(
        reader: R,
        digest: &Digest,
        size: u64,
        wrong_digest: F,
    ) -> DigestCheckedReader<R, F> {
        DigestCheckedReader {
            reader,
            hasher: Some(Hasher::new(digest.algorithm())),
            digest: digest.clone(),
            remaining: size,
            has_failed: false,
            wrong_digest,
        }
    }
}

impl<R: Read, F: Fn(&R) -> io::Error> Read for DigestCheckedReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_failed {
            return Ok(0);
        }
        let count = match self.reader.read(buffer) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                // what was read so far does not show whether the content is right
                self.has_failed = true;
                return Err(error);
            }
            read => read?,
        };
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        self.remaining = self.remaining.saturating_sub(count as u64);
        let is_end = self.remaining == 0 || (count == 0 && !buffer.is_empty());
        // compared once: a reader may be called again at the end
        if is_end
            && let Some(hasher) = self.hasher.take()
            && hasher.finish() != self.digest
        {
            return Err((self.wrong_digest)(&self.reader));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Returns these pieces one by one. An empty piece is an error.
    struct Pieces(VecDeque<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                Some([]) => Err(io::Error::other("cut off")),
                Some(mut piece) => {
                    let count = piece.read(buffer)?;
                    if !piece.is_empty() {
                        self.0.push_front(piece);
                    }
                    Ok(count)
                }
                None => Ok(0),
            }
        }
    }

    fn checked(pieces: &[&'static [u8]]) -> impl Read {
        let pieces = Pieces(pieces.iter().copied().collect());
        let digest = Digest::sha256(b"half a blob");
        DigestCheckedReader::new(pieces, &digest, 11, |_| io::Error::other("wrong"))
    }

    /// Reads to the first error or the end. Returns the bytes and the error.
    fn read(reader: &mut impl Read) -> (Vec<u8>, Option<String>) {
        let mut bytes = Vec::new();
        let error = reader.read_to_end(&mut bytes).err();
        (bytes, error.map(|error| error.to_string()))
    }

    #[test]
    fn the_last_bytes_are_returned_only_if_the_digest_is_right() {
        let right = read(&mut checked(&[b"half a", b" blob"]));
        assert_eq!(right, (b"half a blob".to_vec(), None));
        for pieces in [&[b"half a", &b" Blob"[..]][..], &[b"half a"]] {
            let (bytes, error) = read(&mut checked(pieces));
            assert_eq!(error.as_deref(), Some("wrong"));
            assert!(bytes.len() < 11, "{bytes:?}");
        }
    }

    #[test]
    fn a_reader_ends_after_an_error() {
        let mut reader = checked(&[b"half a", b"", b" blob"]);
        let failed = read(&mut reader);
        assert_eq!(failed, (b"half a".to_vec(), Some("cut off".into())));
        // neither the rest, nor a message about wrong bytes
        assert_eq!(read(&mut reader), (Vec::new(), None));
    }
}
