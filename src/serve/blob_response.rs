//! A blob or manifest as a response: whole, or the range that the client asks for. Bodies are read in pieces on
//! blocking threads.

use super::buffers::Buffers;
use super::known_blobs::holders;
use super::range::{self, Wanted};
use super::response::{ApiError, CONTENT_DIGEST, Response, blocking, empty, set};
use super::state::State;
use crate::model::Digest;
use crate::report::Progress;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, RANGE};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use std::io::{self, Read};
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};

/// How many bytes are read at once. Each response in progress holds two such pieces.
pub(super) const PIECE: usize = 256 << 10;

/// The response that carries the blob `digest`, or the range of it that `request` asks for. The response to
/// HEAD has no body, and needs no hashing.
///
/// # Errors
/// When nobody holds the blob, all who do hold other bytes, or it cannot be read.
pub(super) async fn blob_response(
    state: &Arc<State>,
    digest: &Digest,
    media_type: &str,
    request: &Parts,
) -> Result<Response, ApiError> {
    let (asked, wanted) = (state.clone(), digest.clone());
    let holders = blocking(move || holders(&asked.blobs.0, &wanted)).await??;
    let size = holders[0].size;
    let (headers, head) = (&request.headers, request.method == Method::HEAD);
    let etag = format!("\"{digest}\"");
    let mut response = empty(StatusCode::OK);
    set(&mut response, CONTENT_DIGEST, &digest.to_string());
    set(&mut response, ETAG, &etag);
    if range::is_known(headers, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_LENGTH);
        return Ok(response);
    }
    set(&mut response, CONTENT_TYPE, media_type);
    set(&mut response, ACCEPT_RANGES, "bytes");
    set(&mut response, CONTENT_LENGTH, &size.to_string());
    if head {
        // a range changes nothing about HEAD (RFC 9110 §14.2)
        return Ok(response);
    }
    let holder = state.known.right(&holders, digest).await?;
    let size = holder.size;
    let (from, to) = match range::wanted(headers, size, &etag) {
        Wanted::Whole => (0, size),
        Wanted::Part(from, to) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(&mut response, CONTENT_RANGE, &format!("bytes {from}-{}/{size}", to - 1));
            (from, to)
        }
        Wanted::Outside => {
            let asked = headers.get(RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
            let message = format!("range '{asked}' lies outside of the {size} bytes");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            return Err(ApiError::new(status, "RANGE_INVALID", message)
                .with(CONTENT_RANGE, format!("bytes */{size}")));
        }
    };
    set(&mut response, CONTENT_LENGTH, &(to - from).to_string());
    if to > from {
        let (digest, notes, buffers) = (digest.clone(), state.notes.clone(), state.buffers.clone());
        let open = move || {
            let reader = holder.blobs.open_known(&digest, from)?;
            Ok::<_, ApiError>(Reading { reader, left: to - from, buffers, digest, notes })
        };
        *response.body_mut() = stream(blocking(open).await??);
    }
    Ok(response)
}

/// An open blob, and how much of it is still to be sent.
struct Reading {
    reader: Box<dyn Read + Send>,
    left: u64,
    buffers: Arc<Buffers>,
    digest: Digest,
    notes: Arc<dyn Progress>,
}

type Piece = (io::Result<Bytes>, Reading);

/// A body of exactly the bytes that are left, with one piece read ahead. A read error, such as a wrong checksum of a
/// frame, ends the connection: the bytes sent so far are right, and the client sees that the body is cut short.
fn stream(reading: Reading) -> Body {
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
        let want = reading.left.min(PIECE as u64) as usize;
        let mut buffer = reading.buffers.take();
        let result = reading.reader.read_exact(&mut buffer.bytes_mut()[..want]);
        reading.left -= want as u64;
        (result.map(|()| Bytes::from_owner(buffer).slice(..want)), reading)
    })
}
