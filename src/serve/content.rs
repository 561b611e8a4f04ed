//! Content by digest over several places, and its way into an answer: read in pieces on blocking threads.

use super::range::{self, Wanted};
use super::reply::{Problem, Reply, empty, set};
use crate::content::{BlobRead, ContentError};
use crate::model::Digest;
use crate::report::Progress;
use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, RANGE,
};
use axum::http::{HeaderMap, StatusCode};
use std::io::{self, Read};
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// How much is read at once, in bytes. Two such pieces are held for each answer under way.
const PIECE: u64 = 512 << 10;

/// `Docker-Content-Digest`, which clients check against what they get.
pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Everything that is served, by digest: the first place that has it.
pub(super) struct Contents {
    places: Vec<Arc<dyn BlobRead>>,
    notes: Arc<dyn Progress>,
}

impl Contents {
    pub(super) fn new(places: Vec<Arc<dyn BlobRead>>, notes: Arc<dyn Progress>) -> Contents {
        Contents { places, notes }
    }

    /// Where `digest` can be read, and its size.
    ///
    /// # Errors
    /// When it is nowhere, or a place cannot say.
    pub(super) fn find(&self, digest: &Digest) -> Result<(&Arc<dyn BlobRead>, u64), ContentError> {
        for place in &self.places {
            if let Some(size) = place.stat(digest)? {
                return Ok((place, size));
            }
        }
        Err(ContentError::Missing { digest: digest.clone() })
    }

    /// The answer that carries `digest`, or the part of it that `headers` ask for. `head` leaves the
    /// body out.
    ///
    /// # Errors
    /// When it is nowhere or cannot be opened.
    pub(super) fn reply(
        &self,
        digest: &Digest,
        kind: &str,
        headers: &HeaderMap,
        head: bool,
    ) -> Result<Reply, Problem> {
        let (place, size) = self.find(digest)?;
        let etag = format!("\"{digest}\"");
        let mut reply = empty(StatusCode::OK);
        set(&mut reply, CONTENT_DIGEST, &digest.to_string());
        set(&mut reply, ETAG, &etag);
        if range::is_known(headers, &etag) {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
            reply.headers_mut().remove(CONTENT_LENGTH);
            return Ok(reply);
        }
        set(&mut reply, CONTENT_TYPE, kind);
        set(&mut reply, ACCEPT_RANGES, "bytes");
        // a range changes nothing about HEAD (RFC 9110 §14.2)
        let wanted = if head { Wanted::Whole } else { range::wanted(headers, size, &etag) };
        let (from, to) = match wanted {
            Wanted::Whole => (0, size),
            Wanted::Part(from, to) => {
                *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
                set(&mut reply, CONTENT_RANGE, &format!("bytes {from}-{}/{size}", to - 1));
                (from, to)
            }
            Wanted::Outside => {
                let asked = headers.get(RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
                let message = format!("range '{asked}' lies outside of the {size} bytes");
                let status = StatusCode::RANGE_NOT_SATISFIABLE;
                return Err(Problem::new(status, "RANGE_INVALID", message)
                    .with(CONTENT_RANGE, format!("bytes */{size}")));
            }
        };
        set(&mut reply, CONTENT_LENGTH, &(to - from).to_string());
        if !head && to > from {
            *reply.body_mut() = stream(place.open(digest, from)?, to - from, digest.clone(), &self.notes);
        }
        Ok(reply)
    }
}

/// A reader under way and what is left to read of it.
struct Reading {
    reader: Box<dyn Read + Send>,
    left: u64,
    digest: Digest,
    notes: Arc<dyn Progress>,
}

type Piece = (io::Result<Bytes>, Reading);

/// A body of exactly `length` bytes. One piece is read ahead. A failed read, a mismatch among the frames
/// included, breaks the connection off: what has left is right, and the client sees that it is not whole.
fn stream(reader: Box<dyn Read + Send>, length: u64, digest: Digest, notes: &Arc<dyn Progress>) -> Body {
    let reading = Reading { reader, left: length, digest, notes: notes.clone() };
    let pieces = futures_util::stream::unfold(Ahead::Begin(reading), |ahead| async move {
        let task = match ahead {
            Ahead::Begin(reading) => read(reading),
            Ahead::Under(task) => task,
            Ahead::End => return None,
        };
        match task.await {
            Ok((Ok(bytes), reading)) if reading.left > 0 => Some((Ok(bytes), Ahead::Under(read(reading)))),
            Ok((Ok(bytes), _)) => Some((Ok(bytes), Ahead::End)),
            Ok((Err(error), reading)) => {
                let note = format!("{}: {error}; the answer was broken off", reading.digest);
                reading.notes.note(&note);
                Some((Err(error), Ahead::End))
            }
            Err(stopped) => Some((Err(io::Error::other(stopped)), Ahead::End)),
        }
    });
    Body::from_stream(pieces)
}

enum Ahead {
    Begin(Reading),
    Under(JoinHandle<Piece>),
    End,
}

fn read(mut reading: Reading) -> JoinHandle<Piece> {
    spawn_blocking(move || {
        let want = reading.left.min(PIECE);
        let mut piece = Vec::with_capacity(want as usize);
        let result = match (&mut reading.reader).take(want).read_to_end(&mut piece) {
            Ok(count) if count as u64 == want => Ok(Bytes::from(piece)),
            Ok(_) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the content ends too early")),
            Err(error) => Err(error),
        };
        reading.left -= want;
        (result, reading)
    })
}
