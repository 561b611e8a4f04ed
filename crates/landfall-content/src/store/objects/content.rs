//! The store as content that is read by digest.

use super::bucket_store::{BucketStore, unreadable};
use super::keys;
use crate::bucket::{BlockingReader, block_on};
use crate::{BlobRead, ContentError, FileStamp, VerifiedRead};
use landfall_http::ErrorKind;
use landfall_model::{Digest, Hasher};
use std::io::{self, Read};

impl BlobRead for BucketStore {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        let (this, wanted) = (self.clone(), digest.clone());
        block_on(async move { this.look(&wanted).await }).map_err(|error| unreadable(digest, error))
    }

    /// From its beginning the content is hashed, and its last bytes are held back if it is wrong.
    /// From elsewhere the object store's own checks stand for that.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let (bucket, key) = (self.bucket().clone(), keys::blob(digest));
        let reader = BlockingReader::open(async move { bucket.stream(&key, offset, None).await });
        let reader = match reader {
            // a list has it: the next run must not believe that
            Err(error)
                if error.kind == ErrorKind::NotFound && self.known_size(digest).is_some() =>
            {
                let (this, missing) = (self.clone(), digest.clone());
                block_on(async move { this.condemn([missing]).await })
                    .map_err(|error| unreadable(digest, error))?;
                return Err(unreadable(digest, error));
            }
            reader => reader.map_err(|error| unreadable(digest, error))?,
        };
        Ok(match offset {
            0 => Box::new(Checked::new(self, reader, digest)),
            _ => Box::new(reader),
        })
    }
}

impl VerifiedRead for BucketStore {
    /// No file holds the content: a blob is verified once in a process.
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        Ok(Vec::new())
    }
}

/// Content that is hashed while it is read. A piece is handed out when the next one is there, so
/// that the last comes only after all have the digest.
struct Checked {
    store: BucketStore,
    reader: BlockingReader,
    digest: Digest,
    /// `None` after the end.
    hasher: Option<Hasher>,
    piece: Vec<u8>,
    at: usize,
    next: Vec<u8>,
}

/// The longest piece, in bytes.
const PIECE: usize = 64 << 10;

impl Checked {
    fn new(store: &BucketStore, reader: BlockingReader, digest: &Digest) -> Checked {
        let hasher = Some(Hasher::new(digest.algorithm()));
        let (store, digest) = (store.clone(), digest.clone());
        Checked {
            store,
            reader,
            digest,
            hasher,
            piece: Vec::new(),
            at: 0,
            next: Vec::new(),
        }
    }

    /// Hands out the piece that waits, and receives the one after it.
    fn advance(&mut self) -> io::Result<()> {
        let Some(mut hasher) = self.hasher.take() else {
            self.piece.clear();
            self.at = 0;
            return Ok(());
        };
        std::mem::swap(&mut self.piece, &mut self.next);
        self.at = 0;
        self.next.resize(PIECE, 0);
        let count = self.reader.read(&mut self.next)?;
        self.next.truncate(count);
        if count > 0 {
            hasher.update(&self.next);
            self.hasher = Some(hasher);
        } else if hasher.finish() != self.digest {
            self.piece.clear();
            let (store, digest) = (self.store.clone(), self.digest.clone());
            let told = block_on(async move { store.condemn([digest]).await });
            let hint = match told {
                Ok(()) => "`landfall pull` writes it anew",
                Err(_) => "`landfall pull --rehash` writes it anew",
            };
            let words = format!(
                "{}: the object store has other bytes under this digest; {hint}",
                self.digest
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(())
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            if self.hasher.is_none() && self.next.is_empty() {
                return Ok(0);
            }
            self.advance()?;
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
