//! A blob or manifest as a response: complete, or the range that the client requests.

use super::body::{BODY_PIECE, BlobBody, BodySource};
use super::range::{RequestedRange, matches_etag, requested_range};
use crate::connections::SendfileQueue;
use crate::response::{
    CONTENT_DIGEST, RequestError, ServerResponse, blocking, empty_response, set_header,
};
use crate::state::ServerState;
use crate::verified_blobs::{BlobHolder, blob_holders};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LOCATION, RANGE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use landfall_content::ContentError;
use landfall_model::Digest;
use landfall_model::media_type::is_manifest;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The minimum size in bytes of a blob for which a redirect is worth another request of the client.
const MIN_REDIRECTED: u64 = 64 << 10;

/// The response with the blob `digest`, or with the range that `request` names. HEAD needs no body
/// and so no hashing. Fails if no source has the blob. The bytes that this server sends are
/// verified before they are sent, or while a whole remote blob is sent. Bytes behind a redirect are
/// not verified.
pub(crate) async fn blob_response(
    state: &Arc<ServerState>,
    digest: &Digest,
    media_type: &str,
    request: &Parts,
) -> Result<ServerResponse, RequestError> {
    let reader = state.clone();
    let wanted = digest.clone();
    let holders = blocking(move || blob_holders(&reader.content, &wanted)).await??;
    let first = &holders[0];
    let headers = &request.headers;
    let etag = format!("\"{digest}\"");
    let mut response = empty_response(StatusCode::OK);
    set_header(&mut response, CONTENT_DIGEST, &digest.to_string());
    set_header(&mut response, ETAG, &etag);
    // before anything is read: a digest is enough to know that the client has the content
    if matches_etag(headers, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_LENGTH);
        return Ok(response);
    }
    set_header(&mut response, CONTENT_TYPE, media_type);
    set_header(&mut response, ACCEPT_RANGES, "bytes");
    set_header(&mut response, CONTENT_LENGTH, &first.size.to_string());
    if request.method == Method::HEAD {
        // a range does not change HEAD (RFC 9110 §14.2)
        return Ok(response);
    }
    if let Some(link) = redirect_link(state, first, digest, media_type).await? {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        set_header(&mut response, LOCATION, &link);
        set_header(&mut response, CONTENT_LENGTH, "0");
        response.headers_mut().remove(CONTENT_TYPE);
        let metrics = &state.observer.metrics;
        metrics.redirects.fetch_add(1, Ordering::Relaxed);
        return Ok(response);
    }
    // a remote blob that is requested completely is hashed while it is sent, so that it crosses the
    // network once
    let is_hashed_while_sent = first.blobs.is_remote()
        && !state.verified_blobs.is_verified(first, digest)
        // a range cannot be verified while it is sent, so its blob is hashed first
        && requested_range(headers, first.size, &etag) == RequestedRange::Whole;
    let holder = if is_hashed_while_sent {
        first.clone()
    } else {
        state.verified_blobs.intact_holder(&holders, digest).await?
    };
    let size = holder.size;
    let range = match requested_range(headers, size, &etag) {
        RequestedRange::Whole => 0..size,
        RequestedRange::Part(from, to) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let content_range = format!("bytes {from}-{}/{size}", to - 1);
            set_header(&mut response, CONTENT_RANGE, &content_range);
            from..to
        }
        RequestedRange::Unsatisfiable => return Err(unsatisfiable_range(headers, size)),
    };
    let length = range.end - range.start;
    set_header(&mut response, CONTENT_LENGTH, &length.to_string());
    if length > 0 {
        let files = request.extensions.get::<SendfileQueue>().cloned();
        let digest = digest.clone();
        let state = state.clone();
        let opened = blocking(move || {
            if is_hashed_while_sent {
                open_and_hash(holder, digest, &state)
            } else {
                open_range(&holder, &digest, range, &state, files)
            }
        });
        *response.body_mut() = opened.await??.into_body();
    }
    Ok(response)
}

fn unsatisfiable_range(headers: &HeaderMap, size: u64) -> RequestError {
    let range = headers
        .get(RANGE)
        .and_then(|range| range.to_str().ok())
        .unwrap_or_default();
    RequestError::new(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "RANGE_INVALID",
        format!("range '{range}' is outside of the {size} bytes"),
    )
    .with_header(CONTENT_RANGE, format!("bytes */{size}"))
}

/// Opens a range of a verified blob. A long range of content that is stored unencoded is sent by
/// the system with `sendfile`, if the connection supports it.
fn open_range(
    holder: &BlobHolder,
    digest: &Digest,
    range: Range<u64>,
    state: &ServerState,
    files: Option<SendfileQueue>,
) -> Result<BlobBody, ContentError> {
    let length = range.end - range.start;
    let mut source = None;
    if let Some(files) = files
        // shorter content is read in one piece anyway
        && length > BODY_PIECE as u64
        && let Some(blobs) = holder.blobs.as_file_runs()
        && let Some(runs) = blobs.file_runs(digest, range.start)?
    {
        source = Some(BodySource::Files(runs.peekable(), files));
    }
    let source = match source {
        Some(source) => source,
        None => BodySource::Reader(
            holder.blobs.open_verified(digest, range.start)?,
            state.body_buffers.clone(),
        ),
    };
    Ok(BlobBody {
        source,
        remaining: length,
        digest: digest.clone(),
        progress: state.progress.clone(),
        on_end: None,
    })
}

/// Opens a blob that is hashed while it is sent. Its reader holds the last bytes back until the
/// digest is verified. Later requests need not hash the blob again.
fn open_and_hash(
    holder: BlobHolder,
    digest: Digest,
    state: &Arc<ServerState>,
) -> Result<BlobBody, ContentError> {
    let reader = holder.blobs.open_whole(&digest)?;
    let remaining = holder.size;
    let context = state.context.clone();
    let sent = digest.clone();
    Ok(BlobBody {
        source: BodySource::Reader(reader, state.body_buffers.clone()),
        remaining,
        digest,
        progress: state.progress.clone(),
        on_end: Some(Box::new(move || {
            context.verified_blobs.mark_sent(&holder, &sent);
        })),
    })
}

/// The URL at which the client can read a large blob directly, if the server redirects and the
/// blob has such a URL.
async fn redirect_link(
    state: &Arc<ServerState>,
    holder: &BlobHolder,
    digest: &Digest,
    media_type: &str,
) -> Result<Option<String>, RequestError> {
    // the response with a manifest has headers that an object store does not send
    if !state.redirect || holder.size < MIN_REDIRECTED || is_manifest(media_type) {
        return Ok(None);
    }
    let blobs = holder.blobs.clone();
    let digest = digest.clone();
    let link = blocking(move || match blobs.as_presigned_urls() {
        Some(urls) => urls.presigned_url(&digest),
        None => Ok(None),
    });
    Ok(link.await??)
}
