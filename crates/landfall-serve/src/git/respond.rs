//! Answers the requests of git's smart HTTP protocol (gitprotocol-http, gitprotocol-v2).

use super::lfs;
use super::pack_body::PackBody;
use super::prepared_answer::{PreparedAnswer, offered_refs, prepare_pack};
use super::route::GitRoute;
use crate::blobs::blob_response;
use crate::response::{RequestError, ServerResponse, blocking, response_with_body, set_header};
use crate::route::query_value;
use crate::state::ServerState;
use crate::verified_blobs::blob_holders;
use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::BytesMut;
use flate2::read::GzDecoder;
use futures_util::StreamExt;
use landfall_content::BlobPackBytes;
use landfall_git::{
    FetchRequest, GitError, ObjectDatabase, PackBytes, UploadPackRequest, advertise_version_0,
    advertise_version_2, error_answer, list_refs_answer,
};
use landfall_item::LockedGitRepository;
use landfall_model::media_type;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";

/// Answers a request for a git repository.
pub(crate) async fn respond_git(
    state: &Arc<ServerState>,
    parts: &Parts,
    body: Body,
    route: GitRoute,
) -> Result<ServerResponse, RequestError> {
    let is_version_2 = speaks_version_2(&parts.headers);
    let mut response = match &route {
        GitRoute::Advertisement(repository) => {
            if parts.method != Method::GET && parts.method != Method::HEAD {
                return Err(not_allowed("GET, HEAD"));
            }
            let service = query_value(parts.uri.query(), "service");
            if service.as_deref() != Some("git-upload-pack") {
                // `git push`, or a client of the old protocol that downloads single files
                let message = "repositories are read-only here, over git's smart HTTP protocol";
                return Err(RequestError::denied(message));
            }
            let message = if is_version_2 {
                advertise_version_2()
            } else {
                let database = open_database(state, repository).await?;
                let read = repository.clone();
                let refs = blocking(move || offered_refs(&database, &read)).await?;
                advertise_version_0(
                    &refs.map_err(|error| internal(&error))?,
                    &repository.shallow,
                )
            };
            response_with_body(StatusCode::OK, ADVERTISEMENT, message)
        }
        GitRoute::UploadPack(repository) => {
            if parts.method != Method::POST {
                return Err(not_allowed("POST"));
            }
            let message = read_message(state, parts, body).await?;
            answer_command(state, repository, &message, is_version_2).await?
        }
        GitRoute::LargeFiles(repositories) => {
            if parts.method != Method::POST {
                return Err(not_allowed("POST"));
            }
            let message = read_message(state, parts, body).await?;
            lfs::answer_batch(repositories, parts, message).await?
        }
        GitRoute::LargeFile(repositories, digest) => {
            if parts.method != Method::GET && parts.method != Method::HEAD {
                return Err(not_allowed("GET, HEAD"));
            }
            let Some(file) = lfs::large_file(repositories, digest) else {
                let message = format!("the repository has no large file {digest}");
                return Err(RequestError::not_found("BLOB_UNKNOWN", message));
            };
            return blob_response(state, &file.digest, media_type::OCTETS, parts).await;
        }
    };
    // gitprotocol-http: answers must not be cached
    set_header(
        &mut response,
        CACHE_CONTROL,
        "no-cache, max-age=0, must-revalidate",
    );
    Ok(response)
}

fn not_allowed(methods: &str) -> RequestError {
    RequestError::method_not_allowed(format!("only {methods} is supported here"))
        .with_header(ALLOW, methods)
}

fn internal(error: &GitError) -> RequestError {
    RequestError::internal(error.to_string())
}

/// Whether the client asks for version 2 of the protocol.
fn speaks_version_2(headers: &HeaderMap) -> bool {
    let version = headers
        .get("git-protocol")
        .and_then(|value| value.to_str().ok());
    version.is_some_and(|value| value.split(':').any(|word| word == "version=2"))
}

/// Reads the body of a request, which git compresses if it is long.
async fn read_message(
    state: &ServerState,
    parts: &Parts,
    body: Body,
) -> Result<Bytes, RequestError> {
    let most = state.limits.document_bytes;
    let bad = |why: &str| RequestError::bad_request("UNSUPPORTED", why);
    let bytes = read_body(body, most, state.limits.stall).await?;
    match parts
        .headers
        .get(CONTENT_ENCODING)
        .map(HeaderValue::as_bytes)
    {
        None => Ok(bytes),
        Some(b"gzip" | b"x-gzip") => {
            let mut message = Vec::new();
            GzDecoder::new(&bytes[..])
                .take(most as u64 + 1)
                .read_to_end(&mut message)
                .map_err(|_| bad("the request is not valid gzip"))?;
            if message.len() > most {
                return Err(bad("the request is too large"));
            }
            Ok(message.into())
        }
        Some(_) => Err(bad("the request has an unknown encoding")),
    }
}

/// Reads a body of at most `most` bytes. A client that pauses for `stall` gets an error, because it
/// holds a connection and a permit meanwhile.
async fn read_body(body: Body, most: usize, stall: Duration) -> Result<Bytes, RequestError> {
    let bad = |why: &str| RequestError::bad_request("UNSUPPORTED", why);
    let mut pieces = body.into_data_stream();
    let mut bytes = BytesMut::new();
    loop {
        let Ok(next) = timeout(stall, pieces.next()).await else {
            return Err(bad("the body of the request stalled"));
        };
        match next {
            Some(Ok(piece)) if piece.len() <= most - bytes.len() => bytes.extend_from_slice(&piece),
            Some(_) => return Err(bad("the request is too large or incomplete")),
            None => return Ok(bytes.freeze()),
        }
    }
}

async fn answer_command(
    state: &Arc<ServerState>,
    repository: &Arc<LockedGitRepository>,
    message: &[u8],
    is_version_2: bool,
) -> Result<ServerResponse, RequestError> {
    let request = if is_version_2 {
        UploadPackRequest::parse(message)
    } else {
        FetchRequest::parse_version_0(message).map(UploadPackRequest::Fetch)
    };
    // clients show the text of an error packet, and not the body of an error response
    let refusal = |error: GitError| {
        response_with_body(StatusCode::OK, RESULT, error_answer(&error.to_string()))
    };
    let request = match request {
        Ok(request) => request,
        Err(error) => return Ok(refusal(error)),
    };
    let database = open_database(state, repository).await?;
    let read = database.clone();
    let repository = repository.clone();
    let prepared = blocking(move || {
        let refs = offered_refs(&read, &repository)?;
        match request {
            UploadPackRequest::ListRefs(request) => {
                Ok(PreparedAnswer::Message(list_refs_answer(&refs, &request)))
            }
            UploadPackRequest::Fetch(request) => prepare_pack(&read, &request, &refs, is_version_2),
        }
    });
    match prepared.await? {
        Ok(PreparedAnswer::Message(message)) => {
            Ok(response_with_body(StatusCode::OK, RESULT, message))
        }
        Ok(PreparedAnswer::Pack(pack)) => {
            let body = PackBody {
                database,
                selected: pack.selected,
                head: pack.head,
                bands: pack.request.bands,
                offset_deltas: pack.request.offset_deltas,
                progress: state.progress.clone(),
            };
            let mut response = ServerResponse::new(body.into_body());
            set_header(&mut response, CONTENT_TYPE, RESULT);
            Ok(response)
        }
        Err(error @ GitError::MissingObject { .. }) => Ok(refusal(error)),
        Err(error) => Err(internal(&error)),
    }
}

/// The objects of a repository. Its packs are verified first.
async fn open_database(
    state: &Arc<ServerState>,
    repository: &LockedGitRepository,
) -> Result<Arc<ObjectDatabase>, RequestError> {
    state
        .git_databases
        .get_or_open(&repository.digest, || {
            read_objects(state.clone(), repository.clone())
        })
        .await
}

async fn read_objects(
    state: Arc<ServerState>,
    repository: LockedGitRepository,
) -> Result<ObjectDatabase, RequestError> {
    let mut packs: Vec<Arc<dyn PackBytes>> = Vec::new();
    for pack in &repository.packs {
        let reader = state.clone();
        let digest = pack.digest.clone();
        let holders = blocking(move || blob_holders(&reader.content, &digest)).await??;
        let verified = &state.verified_blobs;
        let holder = verified.intact_holder(&holders, &pack.digest).await?;
        let bytes = BlobPackBytes::new(holder.blobs, pack.digest.clone(), holder.size);
        packs.push(Arc::new(bytes));
    }
    let limits = state.limits;
    let opened = blocking(move || {
        let mut database = ObjectDatabase::new(limits);
        for pack in packs {
            database.add_pack(pack)?;
        }
        database.set_shallow(&repository.shallow);
        Ok::<_, GitError>(database)
    });
    opened
        .await?
        .map_err(|error| RequestError::internal(format!("{}: {error}", repository.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::io;

    #[tokio::test]
    async fn a_body_that_stalls_or_is_too_large_is_refused() {
        let body = |rest: Vec<&'static str>| {
            let pieces = rest.into_iter().map(Ok::<_, io::Error>);
            stream::iter(pieces)
        };
        let complete = Body::from_stream(body(vec!["ab", "", "c"]));
        assert_eq!(read_body(complete, 3, Duration::ZERO).await.unwrap(), "abc");
        let stalled = Body::from_stream(body(vec!["ab"]).chain(stream::pending()));
        let refused = read_body(stalled, 3, Duration::ZERO).await.unwrap_err();
        assert!(refused.message.contains("stalled"), "{}", refused.message);
        let large = Body::from_stream(body(vec!["ab", "cd"]).chain(stream::pending()));
        let refused = read_body(large, 3, Duration::ZERO).await.unwrap_err();
        assert!(refused.message.contains("too large"), "{}", refused.message);
    }
}
