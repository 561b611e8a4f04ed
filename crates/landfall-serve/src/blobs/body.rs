//! The body of a blob's response: sent in pieces, with the next piece prepared ahead on a thread
//! for blocking work.

use crate::body_buffers::BodyBuffers;
use crate::connections::SendfileQueue;
use axum::body::{Body, Bytes};
use landfall_content::{FileRun, FileRuns};
use landfall_model::Digest;
use landfall_model::report::Progress;
use std::io::{self, Read};
use std::iter::Peekable;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// The number of bytes that are read at once. Each response in progress holds two such pieces,
/// unless its files are sent by the system.
pub(crate) const BODY_PIECE: usize = 256 << 10;

/// An open blob, and how much of it is still to be sent.
pub(super) struct BlobBody {
    pub(super) source: BodySource,
    pub(super) remaining: u64,
    pub(super) digest: Digest,
    pub(super) progress: Arc<dyn Progress>,
    /// Called when the last piece was read.
    pub(super) on_end: Option<Box<dyn FnOnce() + Send>>,
}

/// The source of the bytes.
pub(super) enum BodySource {
    Reader(Box<dyn Read + Send>, Arc<BodyBuffers>),
    /// The system sends the bytes from files.
    Files(Peekable<FileRuns>, SendfileQueue),
}

/// A piece that is ready to be sent.
enum BodyPiece {
    Bytes(Bytes),
    Runs(Vec<FileRun>, SendfileQueue),
}

type PreparedPiece = (io::Result<BodyPiece>, BlobBody);

enum ReadAhead {
    NotStarted(BlobBody),
    InProgress(JoinHandle<PreparedPiece>),
    End,
}

impl BlobBody {
    /// A body of exactly the remaining bytes. An error, such as a wrong frame checksum, aborts the
    /// connection, so that the client sees that the body is incomplete. The bytes sent before the
    /// error are correct, unless the blob is hashed while it is sent.
    pub(super) fn into_body(self) -> Body {
        let start = ReadAhead::NotStarted(self);
        let pieces = futures_util::stream::unfold(start, |read_ahead| async move {
            let task = match read_ahead {
                ReadAhead::NotStarted(body) => body.prepare(),
                ReadAhead::InProgress(task) => task,
                ReadAhead::End => return None,
            };
            match task.await {
                Ok((Ok(piece), body)) => {
                    let read_ahead = if body.remaining == 0 {
                        ReadAhead::End
                    } else {
                        // prepared while the client receives this piece, so that disk and network
                        // work at the same time
                        ReadAhead::InProgress(body.prepare())
                    };
                    Some((Ok(piece.into_bytes()), read_ahead))
                }
                Ok((Err(error), body)) => {
                    // status and length were sent already, so only a broken connection can show the
                    // client that there was an error
                    let note = format!("{}: {error}; the response was aborted", body.digest);
                    body.progress.note(&note);
                    Some((Err(error), ReadAhead::End))
                }
                Err(stopped) => Some((Err(io::Error::other(stopped)), ReadAhead::End)),
            }
        });
        Body::from_stream(pieces)
    }

    fn prepare(mut self) -> JoinHandle<PreparedPiece> {
        spawn_blocking(move || {
            let piece = self.next_piece();
            // only a body that was read to its end proves that the blob is intact
            if piece.is_ok()
                && self.remaining == 0
                && let Some(on_end) = self.on_end.take()
            {
                on_end();
            }
            (piece, self)
        })
    }

    fn next_piece(&mut self) -> io::Result<BodyPiece> {
        match &mut self.source {
            BodySource::Reader(reader, buffers) => {
                let length = self.remaining.min(BODY_PIECE as u64) as usize;
                let mut buffer = buffers.take();
                reader.read_exact(&mut buffer.bytes_mut()[..length])?;
                self.remaining -= length as u64;
                Ok(BodyPiece::Bytes(Bytes::from_owner(buffer).slice(..length)))
            }
            BodySource::Files(runs, queue) => {
                let runs = take_runs(runs, &mut self.remaining)?;
                Ok(BodyPiece::Runs(runs, queue.clone()))
            }
        }
    }
}

impl BodyPiece {
    /// The bytes for hyper. For files, this function queues the runs, so it must be called in the
    /// order in which the pieces are sent, and only when the piece is sent.
    fn into_bytes(self) -> Bytes {
        match self {
            BodyPiece::Bytes(bytes) => bytes,
            BodyPiece::Runs(runs, queue) => queue.placeholder(runs),
        }
    }
}

/// Returns the next runs that fit into one piece and into `remaining`.
fn take_runs(runs: &mut Peekable<FileRuns>, remaining: &mut u64) -> io::Result<Vec<FileRun>> {
    let mut piece = Vec::new();
    let mut room = SendfileQueue::MAX_PIECE as u64;
    while *remaining > 0 && room > 0 {
        let Some(Ok(run)) = runs.peek_mut() else {
            let error = runs.next().and_then(Result::err);
            return Err(error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        };
        let length = run.length.min(room).min(*remaining);
        piece.push(FileRun {
            length,
            ..run.clone()
        });
        run.at += length;
        run.length -= length;
        if run.length == 0 {
            runs.next();
        }
        room -= length;
        *remaining -= length;
    }
    Ok(piece)
}
