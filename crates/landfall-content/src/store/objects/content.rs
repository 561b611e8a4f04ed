//! Reads blobs of the store in an object store.

use super::bucket_store::{BucketStore, unreadable};
use super::keys;
use crate::bucket::{BlockingReader, block_on};
use crate::{BlobRead, ContentError, FileStamp, VerifiedRead};
use landfall_http::ErrorKind;
use landfall_model::{Digest, Hasher};
use std::io::{self, Read};

impl BlobRead for BucketStore {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let this = self.clone();
        let wanted = digest.clone();
        block_on(async move { this.look_up(&wanted).await })
            .map_err(|error| unreadable(digest, error))
    }

    /// A blob that is read from byte 0 is hashed, and its last bytes are held back if the digest is
    /// wrong. A read from another offset is protected only by the object store's own checksums.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let bucket = self.bucket().clone();
        let key = keys::blob(digest);
        let reader = BlockingReader::open(async move { bucket.stream(&key, offset, None).await });
        let reader = match reader {
            // a list has the blob although it is absent: the next run must not trust that
            Err(error)
                if error.kind == ErrorKind::NotFound && self.known_size(digest).is_some() =>
            {
                let this = self.clone();
                let missing = digest.clone();
                block_on(async move { this.condemn([missing]).await })
                    .map_err(|error| unreadable(digest, error))?;
                return Err(unreadable(digest, error));
            }
            reader => reader.map_err(|error| unreadable(digest, error))?,
        };
        // the digest is over the whole blob, so a read from the middle cannot be verified
        if offset == 0 {
            Ok(Box::new(VerifyingReader::new(self, reader, digest)))
        } else {
            Ok(Box::new(reader))
        }
    }
}

impl VerifiedRead for BucketStore {
    /// Returns no stamps, because no file holds the content. So each process verifies a blob once.
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        Ok(Vec::new())
    }
}

/// Hashes a blob while it is read. A piece is returned only after the next one was received, so the
/// last piece is returned only if the digest is right.
struct VerifyingReader {
    store: BucketStore,
    reader: BlockingReader,
    digest: Digest,
    /// `None` after the digest was compared.
    hasher: Option<Hasher>,
    /// The piece that is being returned.
    piece: Vec<u8>,
    /// How much of `piece` was returned.
    position: usize,
    /// The piece after `piece`, already hashed.
    next: Vec<u8>,
}

/// The largest piece in bytes.
const PIECE_SIZE: usize = 64 << 10;

impl VerifyingReader {
    fn new(store: &BucketStore, reader: BlockingReader, digest: &Digest) -> VerifyingReader {
        VerifyingReader {
            store: store.clone(),
            reader,
            digest: digest.clone(),
            hasher: Some(Hasher::new(digest.algorithm())),
            piece: Vec::new(),
            position: 0,
            next: Vec::new(),
        }
    }

    /// Moves to the next piece and receives the one after it.
    fn advance(&mut self) -> io::Result<()> {
        let Some(mut hasher) = self.hasher.take() else {
            self.piece.clear();
            self.position = 0;
            return Ok(());
        };
        // one piece is held back, so that the last bytes are returned only if the digest is right
        std::mem::swap(&mut self.piece, &mut self.next);
        self.position = 0;
        self.next.resize(PIECE_SIZE, 0);
        let read = self.reader.read(&mut self.next);
        self.next.truncate(*read.as_ref().unwrap_or(&0));
        if read.is_err() {
            // after an error, the reader is at its end; the piece that was held back is not
            // verified
            self.piece.clear();
        }
        let count = read?;
        if count > 0 {
            hasher.update(&self.next);
            self.hasher = Some(hasher);
        } else if hasher.finish() != self.digest {
            self.piece.clear();
            let store = self.store.clone();
            let digest = self.digest.clone();
            // a pull trusts the lists, so it notices the damage only if the blob was condemned
            let hint = match block_on(async move { store.condemn([digest]).await }) {
                Ok(()) => "`landfall pull` writes it again",
                Err(_) => "`landfall pull --rehash` writes it again",
            };
            let message = format!(
                "{}: the object store has other bytes under this digest; {hint}",
                self.digest
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(())
    }
}

impl Read for VerifyingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.piece.len() {
            if self.hasher.is_none() && self.next.is_empty() {
                return Ok(0);
            }
            self.advance()?;
        }
        let count = buffer.len().min(self.piece.len() - self.position);
        buffer[..count].copy_from_slice(&self.piece[self.position..self.position + count]);
        self.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Bucket;
    use crate::store::StoreTimeouts;
    use bytes::Bytes;
    use futures_util::{FutureExt, StreamExt};
    use landfall_http::HttpError;
    use std::time::Duration;

    #[tokio::test]
    async fn a_reader_ends_after_an_error_and_never_returns_the_last_piece() {
        let timeouts = StoreTimeouts::new(Duration::from_secs(1));
        let store = BucketStore::open(Bucket::in_memory(), timeouts)
            .await
            .unwrap();
        let pieces = [
            Ok(Bytes::from_static(b"half a")),
            Err(HttpError::new(ErrorKind::Network, "cut off")),
        ];
        let reader = BlockingReader::open(
            async move { Ok(futures_util::stream::iter(pieces).boxed()) }.boxed(),
        );
        let digest = Digest::sha256(b"half a blob");
        let mut reader = VerifyingReader::new(&store, reader.unwrap(), &digest);
        let mut buffer = [0; 100];
        assert!(reader.read(&mut buffer).is_err());
        // otherwise, the next line would not end
        assert!(reader.next.is_empty());
        assert_eq!(reader.read(&mut buffer).unwrap(), 0);
    }
}
