//! Blobs and manifests as responses: the requested range, the body, and the headers around it.

use crate::connections::SendfileQueue;
use crate::response::{
    Body, BodyBuffers, CONTENT_DIGEST, RequestError, ServerResponse, blocking, empty_response,
    set_header, streamed_body,
};
use crate::route::header_text;
use crate::state::ServerState;
use crate::verified_blobs::{BlobHolder, blob_holders};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
    IF_RANGE, LOCATION, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use landfall_content::{ContentError, FileRun, FileRuns};
use landfall_model::Digest;
use landfall_model::media_type::is_manifest;
use landfall_model::report::Progress;
use std::io::{self, Read};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::{JoinHandle, spawn_blocking};

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
    // without a date of the content, If-Modified-Since and If-Unmodified-Since have no meaning
    if header_text(headers, IF_MATCH).is_some_and(|tags| !lists_etag(tags, &etag)) {
        let message = format!("the content has the entity tag {etag}");
        let changed = RequestError::new(StatusCode::PRECONDITION_FAILED, "UNKNOWN", message);
        return Err(changed.with_header(ETAG, etag));
    }
    // before anything is read: a digest is enough to know that the client has the content
    if header_text(headers, IF_NONE_MATCH).is_some_and(|tags| lists_etag(tags, &etag)) {
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
    let range = header_text(headers, RANGE).unwrap_or_default();
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

// `Range` and the conditional headers (RFC 9110 §13, §14). The entity tag of a blob is its digest,
// so content never changes under its tag.

/// The part of the content that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    /// From the first offset to before the second.
    Part(u64, u64),
    /// A range outside of the content.
    Unsatisfiable,
}

/// Parses `Range` for content of `size` bytes with the entity tag `etag`. Multiple ranges, other
/// units and malformed ranges are ignored, as the RFC allows.
fn requested_range(headers: &HeaderMap, size: u64, etag: &str) -> RequestedRange {
    if header_text(headers, IF_RANGE).is_some_and(|tag| tag.trim() != etag) {
        // the client has a part of other content, so it must get this content completely
        return RequestedRange::Whole;
    }
    header_text(headers, RANGE)
        // some clients, such as containerd 2.1, request all content from byte 0 on, and no range of
        // empty content can be satisfied
        .filter(|_| size > 0)
        .and_then(|range| parse(range, size))
        .unwrap_or(RequestedRange::Whole)
}

fn parse(range: &str, size: u64) -> Option<RequestedRange> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    if first.is_empty() {
        // `-N`: the last N bytes
        let length = number(last)?;
        if length == 0 {
            // no Content-Range can express the last 0 bytes
            return Some(RequestedRange::Unsatisfiable);
        }
        return Some(RequestedRange::Part(size.saturating_sub(length), size));
    }
    let first = number(first)?;
    let end = if last.is_empty() {
        size
    } else {
        let last = number(last)?;
        if last < first {
            return None;
        }
        last.saturating_add(1).min(size)
    };
    if first >= size {
        return Some(RequestedRange::Unsatisfiable);
    }
    Some(RequestedRange::Part(first, end))
}

/// Parses a number that has only digits: `str::parse` would also accept a sign.
fn number(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Whether `tags`, the value of `If-Match` or `If-None-Match`, contains `etag`, or is `*`.
fn lists_etag(tags: &str, etag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || (!tag.is_empty() && opaque_tag(tag) == opaque_tag(etag)))
}

/// The tag without quotes and weakness mark, which proxies add: `If-None-Match` compares weakly
/// (RFC 9110 §13.1.2), and a tag that is a digest is strong in any spelling.
fn opaque_tag(tag: &str) -> &str {
    tag.trim_start_matches("W/").trim_matches('"')
}

// The body of a blob's response: sent in pieces, with the next piece prepared ahead on a thread
// for blocking work.

/// The number of bytes that are read at once. Each response in progress holds two such pieces,
/// unless its files are sent by the system.
pub(crate) const BODY_PIECE: usize = 256 << 10;

/// An open blob, and how much of it is still to be sent.
struct BlobBody {
    source: BodySource,
    remaining: u64,
    digest: Digest,
    progress: Arc<dyn Progress>,
    /// Called when the last piece was read.
    on_end: Option<Box<dyn FnOnce() + Send>>,
}

/// The source of the bytes.
enum BodySource {
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
    fn into_body(self) -> Body {
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
        streamed_body(pieces)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_the_rfc_says() {
        let cases = [
            ("bytes=0-0", RequestedRange::Part(0, 1)),
            ("bytes=2-4", RequestedRange::Part(2, 5)),
            ("bytes=7-", RequestedRange::Part(7, 10)),
            ("bytes=7-99", RequestedRange::Part(7, 10)),
            ("bytes=-3", RequestedRange::Part(7, 10)),
            ("bytes=-99", RequestedRange::Part(0, 10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=4-2", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
            ("bytes=99999999999999999999-", RequestedRange::Whole),
        ];
        for (range, expected) in cases {
            let headers = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
            assert_eq!(requested_range(&headers, 10, "\"t\""), expected, "{range}");
        }
        let stale = [
            (RANGE, "bytes=1-2".parse().unwrap()),
            (IF_RANGE, "\"old\"".parse().unwrap()),
        ];
        assert_eq!(
            requested_range(&HeaderMap::from_iter(stale), 10, "\"t\""),
            RequestedRange::Whole
        );
        for range in ["bytes=0-", "bytes=-3"] {
            let nothing = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
            let requested = requested_range(&nothing, 0, "\"t\"");
            assert_eq!(requested, RequestedRange::Whole, "{range}");
        }
    }

    #[test]
    fn a_known_etag_is_found_in_a_list() {
        let matches = |tags: &str| lists_etag(tags, "\"sha256:ab\"");
        assert!(matches("\"sha256:ab\"") && matches("W/\"x\", sha256:ab") && matches("*"));
        assert!(!matches("\"sha256:cd\"") && !matches(""));
    }
}
