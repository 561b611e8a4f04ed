//! A blocking reader as a stream.

use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest piece, in bytes.
const PIECE: usize = 256 << 10;
/// The length of a new buffer, in bytes: most blobs are small.
const FIRST: usize = 16 << 10;

/// A blocking reader as a stream of pieces of at most 256 KiB, read on the blocking threads. Few
/// buffers serve the whole stream.
pub fn read_blocking(reader: Box<dyn Read + Send>) -> ByteStream {
    let buffers = Buffers::default();
    futures_util::stream::unfold(Some(reader), move |reader| {
        let buffers = buffers.clone();
        async move {
            let mut reader = reader?;
            let reading = tokio::task::spawn_blocking(move || {
                let mut piece = Piece::new(buffers);
                while piece.length < PIECE {
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
            let local = |error: String| Some((Err(HttpError::new(ErrorKind::Local, error)), None));
            match reading.await {
                Ok(Ok((piece, _))) if piece.length == 0 => None,
                Ok(Ok((piece, reader))) => Some((Ok(Bytes::from_owner(piece)), Some(reader))),
                Ok(Err(error)) => local(error.to_string()),
                Err(error) => local(error.to_string()),
            }
        }
    })
    .boxed()
}

/// Buffers of at most [`PIECE`] bytes that are free.
type Buffers = Arc<Mutex<Vec<Vec<u8>>>>;

/// The beginning of a buffer, which is free again when the piece is dropped: fresh memory is
/// cleared page by page.
struct Piece {
    buffer: Vec<u8>,
    length: usize,
    home: Buffers,
}

impl Piece {
    fn new(home: Buffers) -> Piece {
        let free = home.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Piece {
            buffer: free.unwrap_or_default(),
            length: 0,
            home,
        }
    }

    /// Makes its full buffer larger. The new one is of memory that is cleared already: `resize`
    /// writes it byte by byte in a debug build.
    fn grow(&mut self) {
        let full = std::mem::replace(
            &mut self.buffer,
            vec![0; (4 * self.length).clamp(FIRST, PIECE)],
        );
        self.buffer[..full.len()].copy_from_slice(&full);
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.home
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(buffer);
    }
}
