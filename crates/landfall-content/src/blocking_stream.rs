//! Turns a blocking reader into a stream.

use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_model::locked;
use std::io::Read;
use std::sync::{Arc, Mutex};

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
