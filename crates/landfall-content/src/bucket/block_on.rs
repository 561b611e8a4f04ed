//! Runs requests to an object store for blocking callers. They run on a runtime of their own, so
//! that the caller may be any thread, including a thread of another runtime.

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use landfall_http::{ByteStream, ErrorKind, HttpError};
use std::io::{self, Read};
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// The runtime for requests to object stores, which lives as long as the process.
// started at the first request: most runs use no object store
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        // the threads only wait for the network; the bytes are processed by the callers
        .worker_threads(2)
        .thread_name("object store")
        .enable_all()
        .build()
});

fn runtime() -> Result<&'static Runtime, HttpError> {
    RUNTIME.as_ref().map_err(|error| {
        HttpError::new(
            ErrorKind::Local,
            format!("cannot start threads for the object store: {error}"),
        )
    })
}

/// Runs `work` and blocks until it has ended.
///
/// # Errors
/// If `work` fails, or the runtime cannot start.
pub fn block_on<T: Send + 'static>(
    work: impl Future<Output = Result<T, HttpError>> + Send + 'static,
) -> Result<T, HttpError> {
    // boxed, so that the runtime's code for a task is compiled once per `T`, not per request
    let work: BoxFuture<'static, Result<T, HttpError>> = work.boxed();
    // not `Runtime::block_on`, which panics on a thread of another runtime
    let (done, result) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // the receiver may be gone
        let _ = done.send(work.await);
    });
    result.recv().unwrap_or_else(|_| {
        Err(HttpError::new(
            ErrorKind::Local,
            "a request to the object store ended without a result",
        ))
    })
}

/// How many pieces are received ahead of the reader.
const READ_AHEAD: usize = 8;

type Pieces = mpsc::Receiver<Result<Bytes, HttpError>>;

/// A blocking reader for a stream of an object store. It receives a few pieces ahead, and stops
/// when it is dropped.
pub struct BlockingReader {
    /// The received pieces; `None` after the end or an error.
    pieces: Option<Pieces>,
    piece: Bytes,
}

impl BlockingReader {
    /// Returns a reader for the stream that `open` returns.
    ///
    /// # Errors
    /// If `open` fails, or the runtime cannot start.
    pub fn open(
        open: impl Future<Output = Result<ByteStream, HttpError>> + Send + 'static,
    ) -> Result<BlockingReader, HttpError> {
        let pieces = block_on(async move {
            let mut stream = open.await?;
            let (sender, pieces) = mpsc::channel(READ_AHEAD);
            tokio::spawn(async move {
                while let Some(piece) = stream.next().await {
                    let is_over = piece.is_err();
                    // a dropped reader closes the channel, which ends the request
                    if sender.send(piece).await.is_err() || is_over {
                        return;
                    }
                }
            });
            Ok(pieces)
        })?;
        Ok(BlockingReader {
            pieces: Some(pieces),
            piece: Bytes::new(),
        })
    }

    /// Receives the next piece; `None` at the end.
    fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(mut pieces) = self.pieces.take() else {
            return Ok(None);
        };
        let next = match pieces.try_recv() {
            Ok(piece) => Some(piece),
            // not `blocking_recv`, which panics if the caller is a thread of a runtime
            Err(_) => {
                let (piece, back) = block_on(async move { Ok((pieces.recv().await, pieces)) })?;
                pieces = back;
                piece
            }
        };
        let next = next.transpose()?;
        self.pieces = next.is_some().then_some(pieces);
        Ok(next)
    }
}

impl Read for BlockingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.next().map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
