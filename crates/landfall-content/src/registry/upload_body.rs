//! Sends the body of an upload: in one PUT, or in chunks with PATCH if the host limits the size of
//! a body (distribution-spec, "Pushing a blob in chunks").

use super::session::RegistrySession;
use super::upload::{FailedUpload, UploadEnd, UploadSession, is_api_upload};
use crate::PartOpener;
use futures_util::StreamExt;
use landfall_http::{
    ByteStream, ErrorKind, HttpError, HttpRequest, HttpResponse, RequestBody, RequestPurpose,
    host_port,
};
use landfall_model::Descriptor;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use url::Url;

/// The largest `OCI-Chunk-Min-Length` that is obeyed, in bytes.
const MAX_MIN_CHUNK: u64 = 1 << 30;

/// A part of a blob that is sent as the body of one request.
struct BodyPart {
    method: Method,
    /// The offset of the first byte in the blob.
    offset: u64,
    length: u64,
    /// The shortest chunk that the registry accepts, in bytes.
    min_chunk: u64,
}

impl RegistrySession {
    /// Sends the blob and completes its upload.
    pub(super) async fn send_body(
        &self,
        repository: &str,
        blob: &Descriptor,
        opened: UploadSession,
        opener: &Arc<PartOpener>,
    ) -> Result<(), FailedUpload> {
        // one PUT is preferred: docker-registry syncs the file to disk after every PATCH
        let limit = self.body_limit.get();
        let min_chunk = opened.min_chunk.min(MAX_MIN_CHUNK);
        let chunk = limit.max(min_chunk);
        let mut target = opened.target;
        // without chunks, the PUT that completes the upload carries the whole blob
        let mut last = BodyPart {
            method: Method::PUT,
            offset: 0,
            length: blob.size,
            min_chunk,
        };
        let is_chunked = limit > 0 && blob.size > chunk;
        if is_chunked || self.refuses_whole_puts.load(Ordering::Relaxed) {
            let chunk = if is_chunked { chunk } else { blob.size };
            let mut at = 0;
            while at < blob.size {
                let length = chunk.min(blob.size - at);
                let response = self
                    .send_part(
                        repository,
                        blob,
                        target.clone(),
                        BodyPart {
                            method: Method::PATCH,
                            offset: at,
                            length,
                            min_chunk,
                        },
                        opener,
                    )
                    .await?;
                // each response may name another URL to continue at; its `Range` header is ignored,
                // because some registries send a stale one
                if let Some(location) = response.location() {
                    target = self.upload_url(&target, &location, repository)?;
                }
                response.discard().await;
                at += length;
            }
            last.offset = at;
            last.length = 0;
        }
        target
            .query_pairs_mut()
            .append_pair("digest", &blob.digest.to_string());
        self.send_part(repository, blob, target, last, opener)
            .await?
            .discard()
            .await;
        Ok(())
    }

    /// Sends a part of the blob as the body of one request.
    async fn send_part(
        &self,
        repository: &str,
        blob: &Descriptor,
        target: Url,
        part: BodyPart,
        opener: &Arc<PartOpener>,
    ) -> Result<HttpResponse, FailedUpload> {
        let BodyPart {
            method,
            offset,
            length,
            min_chunk,
        } = part;
        let began = Instant::now();
        let sent = Arc::new(AtomicU64::new(0));
        let is_elsewhere = target.origin() != self.base.origin() && is_api_upload(&target);
        let elsewhere = is_elsewhere.then(|| host_port(&target));
        let mut request = HttpRequest::new(method.clone(), target, RequestPurpose::Registry)
            .header(CONTENT_TYPE, "application/octet-stream");
        // one PATCH with the whole blob is not a chunk
        if method == Method::PATCH && length < blob.size {
            request = request.header(CONTENT_RANGE, &format!("{offset}-{}", offset + length - 1));
        }
        // the sink retries, because a broken upload may have to be opened again
        request.retried = false;
        if length > 0 {
            let opener = opener.clone();
            let sent = sent.clone();
            let opening = move || {
                let opener = opener.clone();
                let sent = sent.clone();
                // the body is opened again after a redirect or a sign-in
                sent.store(0, Ordering::Relaxed);
                let limited =
                    async move { Ok(limited(opener.stream(offset).await?, length, sent)) };
                Box::pin(limited) as futures_util::future::BoxFuture<'static, _>
            };
            request.body = RequestBody::Stream {
                length,
                open: Arc::new(opening),
            };
        }
        let scope = self.scope(repository, true);
        let failed = |error: HttpError| {
            let sent = sent.load(Ordering::Relaxed);
            // a body that ends because its source broke off is not the destination's fault
            let cut = error.kind == ErrorKind::Network && sent > 0 && !opener.is_broken();
            let is_silent = error.status.is_none() && sent == 0 && !opener.is_broken();
            let may_be_misdirected = matches!(error.status, None | Some(404 | 405));
            let cause = self.misdirection().filter(|_| may_be_misdirected);
            // the statuses with which proxies end a request that takes too long
            let is_timeout = matches!(error.status, Some(408 | 502 | 504 | 520..=524));
            FailedUpload {
                error: match cause {
                    Some(cause) => error.hint(&format!("; {cause}")),
                    None => error,
                },
                end: UploadEnd {
                    cut: cut.then_some(sent),
                    took: (cut || is_timeout).then(|| began.elapsed()),
                },
                length,
                min_chunk,
                is_put: method == Method::PUT,
                silent_host: elsewhere.clone().filter(|_| is_silent),
            }
        };
        let response = self.send(request, &scope).await.map_err(failed)?;
        // By the specification, 202 for PATCH and 201 for PUT, but 201 for PATCH from ECR and 204
        // from GCR. Whether the blob is there shows when its manifest is put.
        let good = |status| {
            matches!(
                status,
                StatusCode::CREATED
                    | StatusCode::ACCEPTED
                    | StatusCode::NO_CONTENT
                    | StatusCode::OK
            )
        };
        let large = response.status == StatusCode::PAYLOAD_TOO_LARGE;
        let answered = self
            .expect(
                response,
                &scope,
                || format!("blob {} to {}/{repository}", blob.digest, self.host()),
                good,
            )
            .await;
        answered.map_err(|error| {
            let chunked = self.body_limit.cause().filter(|_| method == Method::PATCH);
            let hint = match chunked {
                Some(cause) if !error.is_transient() => format!(
                    "; it was sent in chunks because {cause}: raise that limit (nginx: \
                     client_max_body_size, or for a time proxy_read_timeout)"
                ),
                _ if large => format!(
                    "; the server accepts no body of {}: raise its limit (nginx: \
                     client_max_body_size)",
                    mib(length)
                ),
                _ => String::new(),
            };
            failed(error.hint(&hint))
        })
    }

    /// Whether the host refused a whole blob in a PUT, as Artifactory up to 6 does. From then on,
    /// blobs are sent in a PATCH and an empty PUT, as by docker.
    pub(super) fn avoid_whole_puts(&self, failed: &FailedUpload) -> bool {
        let error = &failed.error;
        let is_refused = error.kind == ErrorKind::Status(405) || error.has_code("BLOB_UNKNOWN");
        let avoid = is_refused && failed.is_put && failed.length > 0;
        if avoid {
            self.refuses_whole_puts.store(true, Ordering::Relaxed);
        }
        avoid
    }

    /// Lowers the body limit if the host refused the body for its size, or ended it like the
    /// attempt before, at the same position or after the same time. Returns whether the next
    /// attempt sends smaller bodies.
    pub(super) fn reduce_body_size(
        &self,
        failed: &FailedUpload,
        before: Option<UploadEnd>,
    ) -> bool {
        let too_large =
            failed.error.kind == ErrorKind::Status(StatusCode::PAYLOAD_TOO_LARGE.as_u16());
        // proxies with a limit may close the connection instead of answering 413
        let limit = before.and_then(|before| failed.end.same_limit(before));
        let chunks = self.transport.limits().chunks;
        // a chunk that is at least as long as this body would fail again
        let is_smaller = |chunk: &u64| failed.min_chunk.max(*chunk) < failed.length;
        let Some(chunk) = chunks.into_iter().find(is_smaller) else {
            return false;
        };
        let Some(why) = too_large.then_some("refuses (413)").or(limit) else {
            return false;
        };
        let cause = format!("{} {why} a body of {}", self.host(), mib(failed.length));
        if self.body_limit.lower(chunk, &cause) {
            let size = mib(chunk.max(failed.min_chunk));
            let note = format!("{cause}: sending it in chunks of {size}");
            self.transport.progress().note(&note);
        }
        true
    }
}

/// Formats a size in MiB, the unit of body limits in server configurations.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Returns the first `length` bytes of `stream`, and counts them in `sent`.
fn limited(stream: ByteStream, length: u64, sent: Arc<AtomicU64>) -> ByteStream {
    futures_util::stream::unfold((stream, length), move |(mut stream, left)| {
        let sent = sent.clone();
        async move {
            if left == 0 {
                return None;
            }
            let next = stream.next().await?.map(|mut bytes| {
                // a stream runs to the end of the blob, beyond this chunk
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                bytes
            });
            let length = next.as_ref().map_or(0, |bytes| bytes.len() as u64);
            sent.fetch_add(length, Ordering::Relaxed);
            Some((next, (stream, left - length)))
        }
    })
    .boxed()
}
