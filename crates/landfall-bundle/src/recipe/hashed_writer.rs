//! A writer that hashes the bytes that it writes.

use landfall_model::{Descriptor, Digest, Hasher};
use std::io::{self, Write};

/// Writes a limited number of bytes to `sink`, and hashes them.
pub(super) struct HashedWriter<W> {
    sink: W,
    hasher: Hasher,
    /// How many more bytes may be written.
    left: u64,
}

impl<W: Write> HashedWriter<W> {
    /// Begins to write `blob`.
    pub(super) fn of_blob(sink: W, blob: &Descriptor) -> HashedWriter<W> {
        HashedWriter {
            sink,
            hasher: Hasher::new(blob.digest.algorithm()),
            left: blob.size,
        }
    }

    /// Begins to write `size` bytes.
    pub(super) fn sha256(sink: W, size: u64) -> HashedWriter<W> {
        HashedWriter {
            sink,
            hasher: Hasher::new(Digest::sha256(b"").algorithm()),
            left: size,
        }
    }

    /// How many more bytes may be written.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the sink and the digest of the written bytes. Fails if bytes are missing.
    pub(super) fn finish(mut self) -> io::Result<(W, Digest)> {
        self.sink.flush()?;
        if self.left > 0 {
            return Err(invalid("it is shorter than its expected size"));
        }
        Ok((self.sink, self.hasher.finish()))
    }

    /// Returns the sink if exactly the bytes of `blob` were written.
    pub(super) fn finish_blob(self, blob: &Descriptor) -> io::Result<W> {
        let (sink, digest) = self.finish()?;
        if digest != blob.digest {
            return Err(invalid("its bytes do not have its digest"));
        }
        Ok(sink)
    }
}

impl<W: Write> Write for HashedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(invalid("it is longer than its expected size"));
        }
        self.sink.write_all(bytes)?;
        self.hasher.update(bytes);
        self.left -= bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
