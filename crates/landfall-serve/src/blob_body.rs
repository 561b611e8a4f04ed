//! The body of a blob's response: in pieces, with one piece made ready ahead on a blocking thread.

use super::buffers::Buffers;
use super::connections::FilePieces;
use axum::body::{Body, Bytes};
use landfall_content::{FileRun, FileRuns};
use landfall_model::Digest;
use landfall_model::report::Progress;
use std::io::{self, Read};
use std::iter::Peekable;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// How many bytes are read at once. Each response in progress that is read holds two such pieces.
pub(super) const PIECE: usize = 256 << 10;

/// An open blob, and how much of it is still to be sent.
pub(super) struct Sending {
    pub(super) content: Content,
    pub(super) left: u64,
    pub(super) digest: Digest,
    pub(super) notes: Arc<dyn Progress>,
    /// Called when the last piece is made ready.
    pub(super) at_end: Option<Box<dyn FnOnce() + Send>>,
}

/// Where the bytes come from.
pub(super) enum Content {
    /// They are read.
    Reader(Box<dyn Read + Send>, Arc<Buffers>),
    /// The system sends them from files.
    Files(Peekable<FileRuns>, FilePieces),
}

/// What is sent next.
enum Piece {
    Bytes(Bytes),
    Runs(Vec<FileRun>, FilePieces),
}

type Prepared = (io::Result<Piece>, Sending);

enum Ahead {
    Begin(Sending),
    Under(JoinHandle<Prepared>),
    End,
}

impl Sending {
    /// A body of exactly the bytes that are left. An error, such as a wrong checksum of a frame,
    /// ends the connection: the bytes sent so far are right, and the client sees that the body is
    /// cut short.
    pub(super) fn body(self) -> Body {
        let pieces = futures_util::stream::unfold(Ahead::Begin(self), |ahead| async move {
            let task = match ahead {
                Ahead::Begin(sending) => sending.prepare(),
                Ahead::Under(task) => task,
                Ahead::End => return None,
            };
            match task.await {
                Ok((Ok(piece), sending)) => {
                    let ahead = match sending.left {
                        0 => Ahead::End,
                        _ => Ahead::Under(sending.prepare()),
                    };
                    Some((Ok(piece.into_bytes()), ahead))
                }
                Ok((Err(error), sending)) => {
                    let note = format!("{}: {error}; the answer was broken off", sending.digest);
                    sending.notes.note(&note);
                    Some((Err(error), Ahead::End))
                }
                Err(stopped) => Some((Err(io::Error::other(stopped)), Ahead::End)),
            }
        });
        Body::from_stream(pieces)
    }

    fn prepare(mut self) -> JoinHandle<Prepared> {
        spawn_blocking(move || {
            let piece = match &mut self.content {
                Content::Reader(reader, buffers) => read(reader.as_mut(), buffers, &mut self.left),
                Content::Files(runs, pieces) => {
                    gather(runs, &mut self.left).map(|runs| Piece::Runs(runs, pieces.clone()))
                }
            };
            if piece.is_ok()
                && self.left == 0
                && let Some(at_end) = self.at_end.take()
            {
                at_end();
            }
            (piece, self)
        })
    }
}

impl Piece {
    fn into_bytes(self) -> Bytes {
        match self {
            Piece::Bytes(bytes) => bytes,
            Piece::Runs(runs, pieces) => pieces.stand_in(runs),
        }
    }
}

fn read(reader: &mut dyn Read, buffers: &Arc<Buffers>, left: &mut u64) -> io::Result<Piece> {
    let want = (*left).min(PIECE as u64) as usize;
    let mut buffer = buffers.take();
    reader.read_exact(&mut buffer.bytes_mut()[..want])?;
    *left -= want as u64;
    Ok(Piece::Bytes(Bytes::from_owner(buffer).slice(..want)))
}

/// The next runs, as many as a piece takes and `left` says.
fn gather(runs: &mut Peekable<FileRuns>, left: &mut u64) -> io::Result<Vec<FileRun>> {
    let (mut piece, mut room) = (Vec::new(), FilePieces::LONGEST as u64);
    while *left > 0 && room > 0 {
        let Some(Ok(run)) = runs.peek_mut() else {
            let error = runs.next().and_then(Result::err);
            return Err(error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        };
        let length = run.length.min(room).min(*left);
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
        *left -= length;
    }
    Ok(piece)
}
