//! A blob or manifest as a response: whole, or the range that the client asks for.

use super::blob_body::{self, Content, Sending};
use super::connections::FilePieces;
use super::known_blobs::{Holder, holders};
use super::range::{self, Wanted};
use super::response::{ApiError, CONTENT_DIGEST, Response, blocking, empty, set};
use super::state::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LOCATION, RANGE,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use landfall_content::ContentError;
use landfall_model::Digest;
use landfall_model::media_type::is_manifest;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The smallest blob that is worth another request of the client, in bytes.
const REDIRECTED: u64 = 64 << 10;

/// The response that carries the blob `digest`, or the range of it that `request` asks for. The
/// response to HEAD has no body, and needs no hashing.
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
    let holders = blocking(move || holders(&asked.content, &wanted)).await??;
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
    if let Some(link) = link(state, &holders[0], digest, media_type).await? {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        set(&mut response, LOCATION, &link);
        set(&mut response, CONTENT_LENGTH, "0");
        response.headers_mut().remove(CONTENT_TYPE);
        state
            .observer
            .metrics
            .redirects
            .fetch_add(1, Ordering::Relaxed);
        return Ok(response);
    }
    // what comes over a network is hashed on its way where all of it is asked for
    let is_hashed_later = holders[0].blobs.is_remote()
        && !state.known.is_known(&holders[0], digest)
        && matches!(range::wanted(headers, size, &etag), Wanted::Whole);
    let holder = match is_hashed_later {
        true => holders[0].clone(),
        false => state.known.right(&holders, digest).await?,
    };
    let size = holder.size;
    let (from, to) = match range::wanted(headers, size, &etag) {
        Wanted::Whole => (0, size),
        Wanted::Part(from, to) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(
                &mut response,
                CONTENT_RANGE,
                &format!("bytes {from}-{}/{size}", to - 1),
            );
            (from, to)
        }
        Wanted::Outside => {
            let asked = headers
                .get(RANGE)
                .and_then(|range| range.to_str().ok())
                .unwrap_or_default();
            let message = format!("range '{asked}' lies outside of the {size} bytes");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            return Err(ApiError::new(status, "RANGE_INVALID", message)
                .with(CONTENT_RANGE, format!("bytes */{size}")));
        }
    };
    set(&mut response, CONTENT_LENGTH, &(to - from).to_string());
    if to > from {
        let files = request.extensions.get::<FilePieces>().cloned();
        let (digest, state) = (digest.clone(), state.clone());
        let opened = blocking(move || match is_hashed_later {
            true => open_whole(holder, digest, &state),
            false => open(&holder, &digest, from..to, &state, files),
        });
        let opened = opened.await?;
        *response.body_mut() = opened?.body();
    }
    Ok(response)
}

/// The blob, opened for whoever asks by `request`: on a connection that takes files, and for more
/// than a little, as these.
fn open(
    holder: &Holder,
    digest: &Digest,
    range: Range<u64>,
    state: &State,
    files: Option<FilePieces>,
) -> Result<Sending, ContentError> {
    let (from, length) = (range.start, range.end - range.start);
    let mut content = None;
    if length > blob_body::PIECE as u64
        && let Some(files) = files
        && let Some(blobs) = holder.blobs.as_file_runs()
        && let Some(runs) = blobs.file_runs(digest, from)?
    {
        content = Some(Content::Files(runs.peekable(), files));
    }
    let content = match content {
        Some(content) => content,
        None => {
            let reader = holder.blobs.open_verified(digest, from)?;
            Content::Reader(reader, state.buffers.clone())
        }
    };
    Ok(Sending {
        content,
        left: length,
        digest: digest.clone(),
        notes: state.notes.clone(),
        at_end: None,
    })
}

/// The whole of a blob that is hashed while it is sent: its last piece is held back until the
/// digest is right. Later requests need not hash it.
fn open_whole(holder: Holder, digest: Digest, state: &Arc<State>) -> Result<Sending, ContentError> {
    let content = Content::Reader(holder.blobs.open_whole(&digest)?, state.buffers.clone());
    let (left, notes) = (holder.size, state.notes.clone());
    let (kept, sent) = (state.kept.clone(), digest.clone());
    let at_end = Box::new(move || kept.known.was_sent(&holder, &sent));
    Ok(Sending {
        content,
        left,
        digest,
        notes,
        at_end: Some(at_end),
    })
}

/// Where the client can read the blob itself: of what is big, where the server redirects and there
/// is such a place.
async fn link(
    state: &Arc<State>,
    holder: &Holder,
    digest: &Digest,
    media_type: &str,
) -> Result<Option<String>, ApiError> {
    if !state.redirect || holder.size < REDIRECTED || is_manifest(media_type) {
        return Ok(None);
    }
    let (blobs, digest) = (holder.blobs.clone(), digest.clone());
    let presigned = blocking(move || match blobs.as_presigned_urls() {
        Some(urls) => urls.presigned_url(&digest),
        None => Ok(None),
    });
    Ok(presigned.await??)
}
