//! Writes a blob and publishes it only if its size and digest are right, and reads streams with the
//! same checks.

use crate::error::truncated;
use crate::follower::{Follower, WriteProgress};
use crate::{EntryPart, PartSource, PartialBlob, TransferError, WriteError};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Descriptor, Hasher, locked};
use std::io::Read;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// The hash of the bytes of a blob so far, to check its size and digest.
#[derive(Debug)]
pub(crate) struct BlobHash {
    pub(crate) blob: Descriptor,
    pub(crate) hasher: Hasher,
    /// The number of hashed bytes.
    pub(crate) offset: u64,
}

impl BlobHash {
    pub(crate) fn new(blob: &Descriptor) -> BlobHash {
        BlobHash {
            hasher: Hasher::new(blob.digest.algorithm()),
            blob: blob.clone(),
            offset: 0,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
    }

    /// Fails if the blob is shorter than `end`.
    pub(crate) fn check_end(&self, end: u64) -> Result<(), WriteError> {
        if end > self.blob.size {
            return Err(self.wrong_size(end));
        }
        Ok(())
    }

    fn wrong_size(&self, found: u64) -> WriteError {
        WriteError::Size {
            wanted: self.blob.digest.clone(),
            size: self.blob.size,
            found,
        }
    }

    /// Fails if the hashed bytes are not all of the blob.
    pub(crate) fn check(&self) -> Result<(), WriteError> {
        if self.offset != self.blob.size {
            return Err(self.wrong_size(self.offset));
        }
        let wanted = self.blob.digest.clone();
        // a copy, because `finish` consumes the hasher
        match self.hasher.clone().finish() {
            found if found == wanted => Ok(()),
            found => Err(WriteError::Digest { wanted, found }),
        }
    }
}

/// Writes one blob in order and hashes it. If it is dropped before [`VerifiedWriter::commit`], the
/// written bytes are kept for the next run to resume.
#[derive(Debug)]
pub struct VerifiedWriter {
    partial: Arc<dyn PartialBlob>,
    hash: BlobHash,
    /// Reports to followers how much is written.
    progress: watch::Sender<WriteProgress>,
}

impl VerifiedWriter {
    /// Returns a writer that starts at the first byte of `partial`.
    pub fn new(partial: impl PartialBlob + 'static, descriptor: &Descriptor) -> VerifiedWriter {
        VerifiedWriter {
            partial: Arc::new(partial),
            hash: BlobHash::new(descriptor),
            progress: watch::Sender::default(),
        }
    }

    /// Reads and hashes the bytes up to `end`, which are written already.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn absorb(&mut self, end: u64) -> Result<(), WriteError> {
        let mut buffer = vec![0; 1 << 18];
        while self.offset() < end {
            let length = buffer
                .len()
                .min(usize::try_from(end - self.offset()).unwrap_or(usize::MAX));
            let piece = &mut buffer[..length];
            self.partial.read(piece, self.offset())?;
            self.hash(piece)?;
        }
        Ok(())
    }

    /// Returns the partial blob, to write at other offsets.
    pub(super) fn partial(&self) -> Arc<dyn PartialBlob> {
        self.partial.clone()
    }

    /// Returns a follower, to read the blob while it is written.
    pub(super) fn follower(&self) -> Follower {
        Follower {
            partial: self.partial.clone(),
            progress: self.progress.subscribe(),
        }
    }

    /// Returns the number of bytes that are written and hashed: where to resume.
    pub fn offset(&self) -> u64 {
        self.hash.offset
    }

    /// Discards everything and starts over.
    ///
    /// # Errors
    /// If the partial blob cannot be cleared.
    pub fn restart(&mut self) -> Result<(), WriteError> {
        // followers must be notified before the first byte is discarded
        let restarts = self.progress.borrow().restarts + 1;
        self.progress.send_replace(WriteProgress {
            restarts,
            ..WriteProgress::default()
        });
        self.hash = BlobHash::new(&self.hash.blob);
        self.partial.clear()
    }

    /// Writes the next bytes. If they exceed the size of the blob, everything is discarded.
    ///
    /// # Errors
    /// If the blob becomes too long, or the bytes cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if let Err(error) = self.hash.check_end(self.offset() + bytes.len() as u64) {
            self.restart()?;
            return Err(error);
        }
        self.partial.write(bytes, self.offset())?;
        self.hash(bytes)
    }

    /// Hashes written bytes, and advances the offset past them.
    fn hash(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.hash.update(bytes);
        self.progress
            .send_modify(|progress| progress.bytes = self.hash.offset);
        self.partial.hashed(bytes)
    }

    /// Checks size and digest and publishes the blob.
    ///
    /// # Errors
    /// If the size or the digest is wrong, or the blob cannot be published. After a wrong size, the
    /// written bytes are kept for another attempt; after a wrong digest, they are discarded.
    pub fn commit(mut self) -> Result<(), WriteError> {
        if let Err(error) = self.hash.check() {
            if matches!(error, WriteError::Digest { .. }) {
                self.restart()?;
            }
            return Err(error);
        }
        self.partial.publish()?;
        // not earlier: if the run is killed in between, a registry must not have a blob that the
        // store lacks
        self.progress
            .send_modify(|progress| progress.is_verified = true);
        Ok(())
    }
}

/// Reads the whole of a small part, such as a manifest, and checks its digest.
///
/// # Errors
/// If the source lacks the part, or its bytes have another digest.
pub async fn read_part(source: &dyn PartSource, part: &EntryPart) -> Result<Bytes, HttpError> {
    let opened = source.open(part, 0).await?;
    let mut stream = verify_stream(opened.stream, &part.descriptor);
    let mut all = Vec::new();
    while let Some(bytes) = stream.next().await {
        all.extend_from_slice(&bytes?);
    }
    Ok(all.into())
}

/// Checks size and digest of `stream` while it passes. The last piece is held back until both are
/// known to be right: a receiver that counts bytes, such as a registry, must not accept a blob that
/// turns out wrong.
pub fn verify_stream(stream: ByteStream, descriptor: &Descriptor) -> ByteStream {
    struct StreamState {
        stream: ByteStream,
        /// `None` after the end or an error.
        hash: Option<BlobHash>,
        held_back: Option<Bytes>,
    }
    let state = StreamState {
        stream,
        hash: Some(BlobHash::new(descriptor)),
        held_back: None,
    };
    futures_util::stream::unfold(state, |mut state| async move {
        loop {
            // a stream must not be polled again after its end or an error
            let hash = state.hash.as_mut()?;
            match state.stream.next().await {
                // an empty piece must not release the piece that is held back
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => {
                    hash.update(&bytes);
                    let Descriptor { digest, size, .. } = &hash.blob;
                    // a receiver that stops at `size` would never learn that the digest is wrong
                    if hash.offset > *size {
                        let message =
                            format!("received wrong bytes: more than the {size} bytes of {digest}");
                        state.hash = None;
                        return Some((Err(HttpError::new(ErrorKind::Invalid, message)), state));
                    }
                    if let Some(previous) = state.held_back.replace(bytes) {
                        return Some((Ok(previous), state));
                    }
                }
                Some(Err(error)) => {
                    state.hash = None;
                    return Some((Err(error), state));
                }
                None => {
                    let hash = state.hash.take()?;
                    let error = match hash.check() {
                        Ok(()) => return state.held_back.take().map(|last| (Ok(last), state)),
                        Err(WriteError::Size { found, .. }) => truncated(&hash.blob, found),
                        Err(wrong) => HttpError::new(ErrorKind::Invalid, wrong.to_string()),
                    };
                    return Some((Err(error), state));
                }
            }
        }
    })
    .boxed()
}

/// The largest piece of the stream in bytes.
const PIECE_SIZE: usize = 256 << 10;
/// The size of a new buffer in bytes. It is small, because most blobs are.
const INITIAL_SIZE: usize = 16 << 10;

/// Turns a blocking reader into a stream of pieces of at most 256 KiB, which are read on blocking
/// threads. The buffers of dropped pieces are reused.
pub fn read_blocking(reader: Box<dyn Read + Send>) -> ByteStream {
    let buffers = FreeBuffers::default();
    futures_util::stream::unfold(Some(reader), move |reader| {
        let buffers = buffers.clone();
        async move {
            let mut reader = reader?;
            // a whole piece is filled per task, because a switch of threads costs more than a small
            // read
            let reading = tokio::task::spawn_blocking(move || {
                let mut piece = PooledPiece::new(buffers);
                while piece.length < PIECE_SIZE {
                    if piece.length == piece.buffer.len() {
                        piece.grow();
                    }
                    match reader.read(&mut piece.buffer[piece.length..]) {
                        Ok(0) => break,
                        Ok(count) => piece.length += count,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok((piece, reader))
            });
            let message = match reading.await {
                // only the end of the reader leaves a piece empty
                Ok(Ok((piece, _))) if piece.length == 0 => return None,
                Ok(Ok((piece, reader))) => {
                    return Some((Ok(Bytes::from_owner(piece)), Some(reader)));
                }
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            Some((Err(HttpError::new(ErrorKind::Local, message)), None))
        }
    })
    .boxed()
}

/// Buffers of at most [`PIECE_SIZE`] bytes that no piece uses.
type FreeBuffers = Arc<Mutex<Vec<Vec<u8>>>>;

/// The filled part of a buffer. The buffer is used again after the piece is dropped, because fresh
/// memory costs a page fault for each page.
struct PooledPiece {
    buffer: Vec<u8>,
    length: usize,
    pool: FreeBuffers,
}

impl PooledPiece {
    fn new(pool: FreeBuffers) -> PooledPiece {
        let free = locked(&pool).pop();
        PooledPiece {
            buffer: free.unwrap_or_default(),
            length: 0,
            pool,
        }
    }

    /// Enlarges a full buffer. `vec![0; n]` takes memory that the system has cleared, while
    /// `resize` clears it byte by byte in a debug build.
    fn grow(&mut self) {
        let full = std::mem::replace(
            &mut self.buffer,
            vec![0; (4 * self.length).clamp(INITIAL_SIZE, PIECE_SIZE)],
        );
        self.buffer[..full.len()].copy_from_slice(&full);
    }
}

impl AsRef<[u8]> for PooledPiece {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

impl Drop for PooledPiece {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        locked(&self.pool).push(buffer);
    }
}

// Runs file operations of a sink on threads that may block.

/// Runs `work` on a blocking thread. A panic there becomes an error of the destination.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WriteError> + Send + 'static,
) -> Result<T, TransferError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(TransferError::from),
        // a panic must not end the whole run: other blobs are still being transferred
        Err(error) => Err(TransferError::new(
            TransferSide::Destination,
            ErrorKind::Local,
            error.to_string(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    async fn run(pieces: &[&'static str], wanted: &str) -> Result<String, HttpError> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
            .collect();
        let descriptor = Descriptor::of(wanted.as_bytes(), "x");
        let mut stream = verify_stream(futures_util::stream::iter(pieces).boxed(), &descriptor);
        let mut all = String::new();
        while let Some(piece) = stream.next().await {
            all.push_str(std::str::from_utf8(&piece?).unwrap());
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_stream_ends_without_error_only_for_the_right_bytes() {
        assert_eq!(run(&["he", "l", "lo"], "hello").await.unwrap(), "hello");
        assert_eq!(run(&[], "").await.unwrap(), "");
        assert_eq!(
            run(&["he", "llO"], "hello").await.unwrap_err().kind,
            ErrorKind::Invalid
        );
        assert_eq!(
            run(&["he"], "hello").await.unwrap_err().kind,
            ErrorKind::Network
        );
        assert_eq!(
            run(&["hello", "!"], "hello").await.unwrap_err().kind,
            ErrorKind::Invalid
        );
    }

    #[tokio::test]
    async fn a_wrong_stream_yields_fewer_bytes_than_the_size_of_the_blob() {
        for pieces in [
            &["hel", "lO"][..],
            &["helLo", "!"],
            &["hel", "lO", "", "!"],
            &["helLo", ""],
        ] {
            let pieces = pieces
                .iter()
                .map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
            let descriptor = Descriptor::new(Digest::sha256(b"hello"), 5, "x");
            let stream = futures_util::stream::iter(pieces.collect::<Vec<_>>()).boxed();
            let passed: Vec<Result<Bytes, HttpError>> =
                verify_stream(stream, &descriptor).collect().await;
            let (last, good) = passed.split_last().unwrap();
            assert!(
                last.as_ref()
                    .is_err_and(|error| error.kind == ErrorKind::Invalid)
            );
            let bytes: usize = good.iter().map(|piece| piece.as_ref().unwrap().len()).sum();
            assert!(bytes < 5, "{passed:?}");
        }
    }
}
