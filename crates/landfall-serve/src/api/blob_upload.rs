//! Uploads of blobs: mounts, uploads in one request, and chunked uploads (distribution-spec
//! "Pushing blobs").

use super::deletion::sweep;
use crate::response::{
    Body, BodyError, CONTENT_DIGEST, RequestError, ServerResponse, blocking, empty_response,
    set_header,
};
use crate::route::{self, header_text, query_value};
use crate::state::ServerState;
use crate::upload_sessions::{LockedUpload, PushedUpload, shared_upload, unknown_upload};
use crate::writable::{IncomingBlob, WritableStore, WritableStoreError};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, LOCATION, RANGE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyDataStream, BodyExt, LengthLimitError};
use landfall_content::BlobRead;
use landfall_model::{Algorithm, Digest};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const UPLOAD_ID: HeaderName = HeaderName::from_static("docker-upload-uuid");

/// Handles POST: a mount, an upload in one request, or the start of a chunked upload.
pub(crate) async fn begin_upload(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: &str,
    body: Body,
) -> Result<ServerResponse, RequestError> {
    if let Some(digest) = query_digest(parts, "mount")? {
        let reader = state.clone();
        let target = store.clone();
        let mounted = digest.clone();
        if blocking(move || ensure_pushed(&reader, &target, &mounted))
            .await??
            .is_some()
        {
            return Ok(created(name, &digest));
        }
        // the spec: if the blob cannot be mounted, the request starts an upload
    }
    if let Some(digest) = query_digest(parts, "digest")? {
        let incoming = store
            .blobs
            .begin(digest.algorithm())
            .map_err(RequestError::disk)?;
        // an upload in one request has no session, so it ends with the request
        let slot = shared_upload(incoming).lock_owned().await;
        let mut slot = receive(&state, &store, slot, name, &parts.headers, body).await?;
        let incoming = slot.take().ok_or_else(unknown_upload)?;
        return finish(state, store, incoming, name, digest).await;
    }
    let algorithm = match query_value(parts.uri.query(), "digest-algorithm").as_deref() {
        None | Some("sha256") => Algorithm::Sha256,
        Some("sha512") => Algorithm::Sha512,
        Some(other) => {
            let message = format!("digests by '{other}' are not supported; use sha256 or sha512");
            return Err(RequestError::bad_request("DIGEST_INVALID", message));
        }
    };
    let incoming = store.blobs.begin(algorithm).map_err(RequestError::disk)?;
    let id = state.uploads.add(name, incoming, state.limits.uploads)?;
    Ok(upload_status(StatusCode::ACCEPTED, name, &id, 0))
}

/// Handles GET, PATCH, PUT and DELETE of an upload in progress.
pub(crate) async fn resume_upload(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: &str,
    id: &str,
    body: Body,
) -> Result<ServerResponse, RequestError> {
    let session = state.uploads.get(name, id)?;
    match parts.method {
        Method::PATCH => {
            let slot = session.incoming.clone().lock_owned().await;
            let received = receive(&state, &store, slot, name, &parts.headers, body).await;
            after_request(&state, &session, id, &received);
            let size = received?.as_ref().ok_or_else(unknown_upload)?.size;
            Ok(upload_status(StatusCode::ACCEPTED, name, id, size))
        }
        Method::PUT => {
            let digest = query_digest(parts, "digest")?.ok_or_else(|| {
                RequestError::bad_request(
                    "DIGEST_INVALID",
                    "the last request of an upload must have ?digest=",
                )
            })?;
            let mut slot = session.incoming.clone().lock_owned().await;
            // the client names the digest only now
            if let Some(incoming) = slot.as_mut() {
                incoming.expect_algorithm(digest.algorithm());
            }
            let received = receive(&state, &store, slot, name, &parts.headers, body).await;
            after_request(&state, &session, id, &received);
            let mut slot = received?;
            let incoming = slot.take().ok_or_else(unknown_upload)?;
            state.uploads.remove(id);
            finish(state, store, incoming, name, digest).await
        }
        Method::DELETE => {
            state.uploads.remove(id);
            Ok(empty_response(StatusCode::NO_CONTENT))
        }
        _ => {
            let slot = session.incoming.lock().await;
            let size = slot.as_ref().ok_or_else(unknown_upload)?.size;
            Ok(upload_status(StatusCode::NO_CONTENT, name, id, size))
        }
    }
}

/// Restarts the expiry of the upload `id` after a request. If bytes of the request could not be
/// stored, removes the upload with the bytes that it has: until it expired, they would leave no
/// room for other pushes. An upload without bytes stays.
fn after_request(
    state: &ServerState,
    session: &PushedUpload,
    id: &str,
    received: &Result<LockedUpload, RequestError>,
) {
    session.touch();
    let has_no_room = received.as_ref().is_err_and(|error| {
        // a full quota, a full disk, or a disk that cannot be written to
        matches!(
            error.status,
            StatusCode::FORBIDDEN
                | StatusCode::INSUFFICIENT_STORAGE
                | StatusCode::INTERNAL_SERVER_ERROR
        )
    });
    if has_no_room && session.size().is_some_and(|size| size > 0) {
        state.uploads.remove(id);
    }
}

/// The digest in the query parameter `key`, or `None` without that parameter.
fn query_digest(parts: &Parts, key: &str) -> Result<Option<Digest>, RequestError> {
    let text = query_value(parts.uri.query(), key);
    text.map(|text| route::digest(&text)).transpose()
}

/// Ensures that the blob is in the writable store, by copying it from a bundle if necessary: pushed
/// images must stay complete without the bundle. Returns the size of the blob, or `None` if it is
/// neither in the store nor in a bundle.
pub(super) fn ensure_pushed(
    state: &ServerState,
    store: &WritableStore,
    digest: &Digest,
) -> Result<Option<u64>, RequestError> {
    // protected before the look-up, so that no sweep removes the blob before its manifest is pushed
    store.blobs.protect(digest);
    if let Some(size) = store.blobs.stat(digest)? {
        return Ok(Some(size));
    }
    let size = state.blobs.stat(digest)?;
    if size.is_some() {
        store.blobs.copy_from(&state.blobs, digest)?;
    }
    Ok(size)
}

async fn finish(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    incoming: IncomingBlob,
    name: &str,
    digest: Digest,
) -> Result<ServerResponse, RequestError> {
    let expected = digest.clone();
    blocking(move || {
        store.blobs.keep(incoming, &expected)?;
        // hashed while it was received, so the first pull need not hash it again
        state
            .verified_blobs
            .mark_received(&*store.blobs, &expected)?;
        Ok::<_, RequestError>(())
    })
    .await??;
    Ok(created(name, &digest))
}

fn created(name: &str, digest: &Digest) -> ServerResponse {
    let mut response = empty_response(StatusCode::CREATED);
    let location = format!("/v2/{name}/blobs/{digest}");
    set_header(&mut response, LOCATION, &location);
    set_header(&mut response, CONTENT_DIGEST, &digest.to_string());
    response
}

fn upload_status(status: StatusCode, name: &str, id: &str, size: u64) -> ServerResponse {
    let mut response = empty_response(status);
    set_header(&mut response, LOCATION, &upload_location(name, id));
    set_header(&mut response, RANGE, &received_range(size));
    set_header(&mut response, UPLOAD_ID, id);
    response
}

fn upload_location(name: &str, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

/// The value of `Range` for an upload of `size` bytes. An empty upload has `0-0`, as in other
/// registries: the header cannot express an empty range.
fn received_range(size: u64) -> String {
    format!("0-{}", size.saturating_sub(1))
}

/// Receives `body` into the upload in `slot` and returns the upload. If the body ends early, the
/// bytes that arrived are kept.
pub(super) async fn receive(
    state: &Arc<ServerState>,
    store: &Arc<WritableStore>,
    slot: LockedUpload,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<LockedUpload, RequestError> {
    let incoming = slot.as_ref().ok_or_else(unknown_upload)?;
    check_content_range(headers, incoming.size).map_err(|error| {
        error
            .with_header(LOCATION, upload_location(name, &incoming.id))
            .with_header(RANGE, received_range(incoming.size))
    })?;
    // checked before the body is read: a client that cannot succeed need not send it
    ensure_room(state, store, content_length(headers).unwrap_or(0)).await?;
    write_body(slot, body).await
}

/// Ensures that the quota has room for `bytes` more, by removing unreferenced blobs if necessary.
async fn ensure_room(
    state: &Arc<ServerState>,
    store: &Arc<WritableStore>,
    bytes: u64,
) -> Result<(), RequestError> {
    if store.quota().fits(bytes) {
        return Ok(());
    }
    let state = state.clone();
    let store = store.clone();
    blocking(move || {
        sweep(&state.context, &store);
        if store.quota().fits(bytes) {
            Ok(())
        } else {
            Err(RequestError::from(store.quota().full_error()))
        }
    })
    .await?
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    header_text(headers, CONTENT_LENGTH)?.parse().ok()
}

/// Checks that `Content-Range: FIRST-LAST` begins at the size of the upload and matches the length
/// of the body. Some clients write it as in a response: `bytes FIRST-LAST/SIZE`.
fn check_content_range(headers: &HeaderMap, size: u64) -> Result<(), RequestError> {
    let Some(text) = header_text(headers, CONTENT_RANGE) else {
        return Ok(());
    };
    let mismatch = || {
        let message = format!("Content-Range '{text}' does not match the body");
        RequestError::bad_request("SIZE_INVALID", message)
    };
    let (first, last) = parse_content_range(text).ok_or_else(mismatch)?;
    if first != size {
        let message = format!("the chunk begins at {first}, but {size} bytes were received");
        return Err(RequestError::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "BLOB_UPLOAD_INVALID",
            message,
        ));
    }
    let length = content_length(headers);
    let has_length = length.is_none_or(|length| last.checked_sub(first) == length.checked_sub(1));
    // a chunk with another length than announced would shift all later chunks
    if first <= last && has_length {
        Ok(())
    } else {
        Err(mismatch())
    }
}

fn parse_content_range(text: &str) -> Option<(u64, u64)> {
    let range = text.trim().trim_start_matches("bytes").trim();
    let (range, _) = range.split_once('/').unwrap_or((range, ""));
    let (first, last) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// The number of bytes of a body that are collected before they are hashed and written.
const BATCH: usize = 1 << 20;
/// The maximum number of pieces that are collected: each uses memory, however small it is.
const MAX_PIECES: usize = 1024;
/// How long a client may pause before its received bytes are written, which frees their memory.
const PAUSE: Duration = Duration::from_millis(250);

/// Writes `body` to the upload in `slot`, and returns the slot. If the body ends early, the bytes
/// that arrived are kept. A write in progress owns the slot, so the upload survives if this future
/// is dropped because the server closes the connection.
pub(super) async fn write_body(
    mut slot: LockedUpload,
    body: Body,
) -> Result<LockedUpload, RequestError> {
    let mut stream = body.into_data_stream();
    let mut received = collect_pieces(&mut stream).await;
    loop {
        let (pieces, end) = received;
        let write = spawn_blocking(move || {
            let mut pieces = pieces.iter();
            let result: Result<(), WritableStoreError> = match slot.as_mut() {
                Some(incoming) => pieces.try_for_each(|piece| incoming.write(piece)),
                None => Ok(()),
            };
            (slot, result)
        });
        received = match &end {
            // the next pieces arrive while the previous ones are written
            None => collect_pieces(&mut stream).await,
            Some(_) => Default::default(),
        };
        let (written, result) = write.await?;
        slot = written;
        result?;
        if let Some(end) = end {
            return end.map(|()| slot);
        }
    }
}

/// The pieces of a body that arrived together; if the body has ended, also whether it is complete.
/// The connection table ends the body of a client that stalls.
async fn collect_pieces(
    stream: &mut BodyDataStream<Body>,
) -> (Vec<Bytes>, Option<Result<(), RequestError>>) {
    let mut pieces = Vec::new();
    let mut length = 0;
    while length < BATCH && pieces.len() < MAX_PIECES {
        let next = if pieces.is_empty() {
            Ok(stream.next().await)
        } else {
            timeout(PAUSE, stream.next()).await
        };
        match next {
            Ok(Some(Ok(piece))) => {
                length += piece.len();
                pieces.push(piece);
            }
            Ok(None) => return (pieces, Some(Ok(()))),
            Ok(Some(Err(error))) => return (pieces, Some(Err(body_error(error)))),
            // the client pauses: its bytes are written, which frees their memory
            Err(_) => return (pieces, None),
        }
    }
    (pieces, None)
}

fn body_error(error: BodyError) -> RequestError {
    if error.is::<LengthLimitError>() {
        let message = "the body is larger than the limit";
        return RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID", message);
    }
    incomplete(format!("the body ended early: {error}"))
}

fn incomplete(message: String) -> RequestError {
    RequestError::bad_request("BLOB_UPLOAD_INVALID", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::{boxed_body, full_body, streamed_body};
    use futures_util::stream;
    use http_body_util::Limited;
    use std::io;
    use std::task::Poll;
    use tokio::sync::Notify;

    #[test]
    fn chunks_must_continue_at_the_size_of_the_upload() {
        let check = |range: &str, length: &str, size| {
            let headers = [
                (CONTENT_RANGE, range.parse().unwrap()),
                (CONTENT_LENGTH, length.parse().unwrap()),
            ];
            check_content_range(&HeaderMap::from_iter(headers), size)
                .map_err(|error| error.status.as_u16())
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
            check_content_range(&HeaderMap::new(), 7).map_err(|error| error.code),
            Ok(())
        );
    }

    #[tokio::test]
    async fn a_chunked_upload_survives_the_end_of_its_connection() {
        let dir = tempfile::tempdir().unwrap();
        let store = WritableStore::open(dir.path(), None).unwrap();
        let upload = shared_upload(store.blobs.begin(Algorithm::Sha256).unwrap());
        let is_waiting = Arc::new(Notify::new());
        let waiting = is_waiting.clone();
        let mut first = Some(Bytes::from(vec![1; BATCH]));
        let body = stream::poll_fn(move |_| match first.take() {
            Some(piece) => Poll::Ready(Some(Ok::<_, io::Error>(piece))),
            None => {
                waiting.notify_one();
                Poll::Pending
            }
        });
        let slot = upload.clone().lock_owned().await;
        let received = write_body(slot, streamed_body(body));
        tokio::select! {
            _ = received => panic!("the body has not ended"),
            () = is_waiting.notified() => {}
        }
        let size = upload.lock().await.as_ref().map(|incoming| incoming.size);
        assert_eq!(size, Some(BATCH as u64));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_and_an_incomplete_body_have_different_statuses() {
        let dir = tempfile::tempdir().unwrap();
        let store = WritableStore::open(dir.path(), None).unwrap();
        let broken = stream::iter([Ok(Bytes::from("abc")), Err(io::Error::other("reset"))]);
        for (body, status) in [
            (streamed_body(broken), StatusCode::BAD_REQUEST),
            (
                boxed_body(Limited::new(full_body("abcd"), 3)),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
        ] {
            let upload = shared_upload(store.blobs.begin(Algorithm::Sha256).unwrap());
            let slot = upload.lock_owned().await;
            let result = write_body(slot, body).await;
            assert_eq!(result.map(drop).unwrap_err().status, status);
        }
    }
}
