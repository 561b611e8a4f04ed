//! Uploads of blobs: the start, chunks, the end, and mounts.

use super::deletion;
use super::response::{ApiError, CONTENT_DIGEST, Response, blocking, empty, set};
use super::route::query;
use super::state::State;
use super::upload_sessions::unknown;
use super::writable::{IncomingBlob, KeepError, WritableStore};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, LOCATION, RANGE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use futures_util::StreamExt;
use landfall_content::BlobRead;
use landfall_model::{Algorithm, Digest};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

const UPLOAD_ID: HeaderName = HeaderName::from_static("docker-upload-uuid");
/// How many bytes of a body are collected before they are hashed and written.
const PIECE: usize = 1 << 20;
/// How many pieces are collected before they are written, however small they are.
const MOST_PIECES: usize = 1024;
/// How long a client may pause before what it has sent so far is written. It takes no memory after
/// that.
const PAUSE: Duration = Duration::from_millis(250);
/// The code of the error that a body broke off.
pub(super) const BROKEN_OFF: &str = "BLOB_UPLOAD_INVALID";

/// A digest in the query.
fn digest(parts: &Parts, key: &str) -> Result<Option<Digest>, ApiError> {
    let text = query(parts.uri.query(), key);
    let digest = text.map(|text| text.parse::<Digest>()).transpose();
    digest.map_err(|error| ApiError::bad("DIGEST_INVALID", error.to_string()))
}

/// POST: a mount, a whole blob, or the start of an upload.
pub(super) async fn begin(
    state: Arc<State>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: &str,
    body: Body,
) -> Result<Response, ApiError> {
    if let Some(digest) = digest(parts, "mount")? {
        let (state, store, mounted) = (state.clone(), store.clone(), digest.clone());
        if blocking(move || have(&state, &store, &mounted))
            .await??
            .is_some()
        {
            return Ok(created(name, &digest));
        }
    }
    if let Some(digest) = digest(parts, "digest")? {
        let mut slot = Some(
            store
                .blobs
                .begin(digest.algorithm())
                .map_err(ApiError::disk)?,
        );
        receive(&state, &store, &mut slot, name, &parts.headers, body).await?;
        return keep(state, store, slot.ok_or_else(unknown)?, name, digest).await;
    }
    let algorithm = match query(parts.uri.query(), "digest-algorithm").as_deref() {
        None | Some("sha256") => Algorithm::Sha256,
        Some("sha512") => Algorithm::Sha512,
        Some(other) => {
            let message =
                format!("digests by '{other}' are not known here (sha256 and sha512 are)");
            return Err(ApiError::bad("DIGEST_INVALID", message));
        }
    };
    let incoming = store.blobs.begin(algorithm).map_err(ApiError::disk)?;
    let id = state.uploads.add(name, incoming, state.limits.uploads)?;
    Ok(status(StatusCode::ACCEPTED, name, &id, 0))
}

/// GET, PATCH, PUT and DELETE of an upload in progress.
pub(super) async fn resume(
    state: Arc<State>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: &str,
    id: &str,
    body: Body,
) -> Result<Response, ApiError> {
    let session = state.uploads.get(name, id)?;
    match parts.method {
        Method::PATCH => {
            let mut slot = session.incoming.lock().await;
            let received = receive(&state, &store, &mut slot, name, &parts.headers, body).await;
            session.touch();
            let size = received?;
            Ok(status(StatusCode::ACCEPTED, name, id, size))
        }
        Method::PUT => {
            let digest = digest(parts, "digest")?.ok_or_else(|| {
                ApiError::bad(
                    "DIGEST_INVALID",
                    "the last request of an upload needs ?digest=",
                )
            })?;
            let mut slot = session.incoming.lock().await;
            if let Some(incoming) = slot.as_mut() {
                incoming.expect(digest.algorithm());
            }
            let received = receive(&state, &store, &mut slot, name, &parts.headers, body).await;
            session.touch();
            received?;
            let incoming = slot.take().ok_or_else(unknown)?;
            state.uploads.remove(id);
            keep(state, store, incoming, name, digest).await
        }
        Method::DELETE => {
            state.uploads.remove(id);
            Ok(empty(StatusCode::NO_CONTENT))
        }
        _ => {
            let slot = session.incoming.lock().await;
            let size = slot.as_ref().ok_or_else(unknown)?.size;
            Ok(status(StatusCode::NO_CONTENT, name, id, size))
        }
    }
}

/// Makes sure that a blob is among what was pushed, if need be by a copy from a bundle. Returns its
/// size, or `None` where nobody has it.
pub(super) fn have(
    state: &State,
    store: &WritableStore,
    digest: &Digest,
) -> Result<Option<u64>, ApiError> {
    store.blobs.tell(digest);
    if let Some(size) = store.blobs.stat(digest)? {
        return Ok(Some(size));
    }
    let size = state.blobs.stat(digest)?;
    if size.is_some() {
        store.blobs.adopt(&state.blobs, digest)?;
    }
    Ok(size)
}

async fn keep(
    state: Arc<State>,
    store: Arc<WritableStore>,
    incoming: IncomingBlob,
    name: &str,
    digest: Digest,
) -> Result<Response, ApiError> {
    let expected = digest.clone();
    let work = move || {
        store.blobs.keep(incoming, &expected)?;
        Ok::<_, ApiError>(state.known.came_in(&*store.blobs, &expected)?)
    };
    blocking(work).await??;
    Ok(created(name, &digest))
}

fn created(name: &str, digest: &Digest) -> Response {
    let mut response = empty(StatusCode::CREATED);
    set(
        &mut response,
        LOCATION,
        &format!("/v2/{name}/blobs/{digest}"),
    );
    set(&mut response, CONTENT_DIGEST, &digest.to_string());
    response
}

fn status(status: StatusCode, name: &str, id: &str, size: u64) -> Response {
    let mut response = empty(status);
    set(
        &mut response,
        LOCATION,
        &format!("/v2/{name}/blobs/uploads/{id}"),
    );
    set(
        &mut response,
        RANGE,
        &format!("0-{}", size.saturating_sub(1)),
    );
    set(&mut response, UPLOAD_ID, id);
    response
}

/// Receives the body in pieces, and returns the size of the upload so far. Of a body that breaks
/// off, the bytes that came in stay.
pub(super) async fn receive(
    state: &Arc<State>,
    store: &Arc<WritableStore>,
    slot: &mut Option<IncomingBlob>,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<u64, ApiError> {
    let incoming = slot.as_ref().ok_or_else(unknown)?;
    check_range(headers, incoming.size).map_err(|error| {
        error
            .with(
                LOCATION,
                format!("/v2/{name}/blobs/uploads/{}", incoming.id()),
            )
            .with(RANGE, format!("0-{}", incoming.size.saturating_sub(1)))
    })?;
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    make_room(state, store, length.unwrap_or(0)).await?;
    let mut stream = body.into_data_stream();
    let mut under_way: Option<JoinHandle<Written>> = None;
    loop {
        let (pieces, end) = gather(&mut stream, state.limits.stall).await;
        // what came before was written meanwhile
        if let Some(write) = under_way.take() {
            settle(write, slot).await?;
        }
        let mut incoming = slot.take().ok_or_else(unknown)?;
        let write = spawn_blocking(move || {
            let result = pieces.iter().try_for_each(|piece| incoming.write(piece));
            (incoming, result)
        });
        match end {
            None => under_way = Some(write),
            Some(end) => {
                settle(write, slot).await?;
                let size = slot.as_ref().ok_or_else(unknown)?.size;
                return end
                    .map(|()| size)
                    .map_err(|message| ApiError::bad(BROKEN_OFF, message));
            }
        }
    }
}

/// The next pieces of a body; and where it ends, how.
async fn gather(
    stream: &mut BodyDataStream,
    stall: Duration,
) -> (Vec<Bytes>, Option<Result<(), String>>) {
    let (mut pieces, mut gathered) = (Vec::new(), 0);
    // each piece has its cost, however small it is
    while gathered < PIECE && pieces.len() < MOST_PIECES {
        let patience = if pieces.is_empty() {
            stall
        } else {
            PAUSE.min(stall)
        };
        match timeout(patience, stream.next()).await {
            Ok(Some(Ok(piece))) => {
                gathered += piece.len();
                pieces.push(piece);
            }
            Ok(None) => return (pieces, Some(Ok(()))),
            Ok(Some(Err(error))) => {
                return (pieces, Some(Err(format!("the body broke off: {error}"))));
            }
            Err(_) if pieces.is_empty() => {
                return (pieces, Some(Err("the body stood still".to_owned())));
            }
            Err(_) => return (pieces, None),
        }
    }
    (pieces, None)
}

/// An upload after a write, and how that went.
type Written = (IncomingBlob, Result<(), KeepError>);

/// Waits until a write is done, and puts the upload back.
async fn settle(
    write: JoinHandle<Written>,
    slot: &mut Option<IncomingBlob>,
) -> Result<(), ApiError> {
    let (incoming, result) = write
        .await
        .map_err(|stopped| ApiError::internal(stopped.to_string()))?;
    *slot = Some(incoming);
    Ok(result?)
}

/// Makes sure that so many bytes fit, if need be by removing what nothing names.
async fn make_room(
    state: &Arc<State>,
    store: &Arc<WritableStore>,
    bytes: u64,
) -> Result<(), ApiError> {
    if store.room().fits(bytes) {
        return Ok(());
    }
    let (state, store) = (state.clone(), store.clone());
    let work = move || {
        deletion::sweep(&state.kept, &store);
        if store.room().fits(bytes) {
            Ok(())
        } else {
            Err(ApiError::from(store.room().full()))
        }
    };
    blocking(work).await?
}

/// `Content-Range: FIRST-LAST` must continue at the upload's size and fit the body's length.
fn check_range(headers: &HeaderMap, size: u64) -> Result<(), ApiError> {
    let Some(range) = headers
        .get(CONTENT_RANGE)
        .and_then(|range| range.to_str().ok())
    else {
        return Ok(());
    };
    let bare = range
        .trim()
        .trim_start_matches("bytes")
        .trim()
        .split('/')
        .next()
        .unwrap_or_default();
    let bounds = bare.split_once('-').and_then(|(first, last)| {
        Some((
            first.trim().parse::<u64>().ok()?,
            last.trim().parse::<u64>().ok()?,
        ))
    });
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let fits = |first: u64, last: u64| {
        length.is_none_or(|length| last.checked_sub(first) == length.checked_sub(1))
    };
    match bounds {
        Some((first, last)) if first == size && first <= last && fits(first, last) => Ok(()),
        Some((first, _)) if first != size => {
            let message = format!("the chunk begins at {first}, but {size} bytes are here");
            Err(ApiError::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "BLOB_UPLOAD_INVALID",
                message,
            ))
        }
        _ => Err(ApiError::bad(
            "SIZE_INVALID",
            format!("Content-Range '{range}' does not fit the body"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_must_continue_at_the_size_of_the_upload() {
        let check = |range: &str, length: &str, size| {
            let headers = [
                (CONTENT_RANGE, range.parse().unwrap()),
                (CONTENT_LENGTH, length.parse().unwrap()),
            ];
            check_range(&HeaderMap::from_iter(headers), size).map_err(|error| error.status.as_u16())
        };
        assert_eq!(check("0-9", "10", 0), Ok(()));
        assert_eq!(check("10-19", "10", 10), Ok(()));
        assert_eq!(check("bytes 10-19/30", "10", 10), Ok(()));
        assert_eq!(check("10-19", "10", 0), Err(416));
        assert_eq!(check("0-9", "10", 10), Err(416));
        assert_eq!(check("0-9", "11", 0), Err(400));
        assert_eq!(check("9-0", "10", 9), Err(400));
        assert_eq!(check("x-y", "10", 0), Err(400));
        assert_eq!(
            check_range(&HeaderMap::new(), 7).map_err(|error| error.code),
            Ok(())
        );
    }
}
