//! Answers the requests of git's smart HTTP protocol (gitprotocol-http, gitprotocol-v2).

use super::pack_body::PackBody;
use super::route::{GitRoute, GitService};
use crate::response::{RequestError, ServerResponse, blocking, response_with_body, set_header};
use crate::route::query_value;
use crate::state::ServerState;
use crate::verified_blobs::blob_holders;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use flate2::read::GzDecoder;
use landfall_content::BlobPackBytes;
use landfall_git::{
    FetchRequest, GitError, GitObjectKind, ObjectDatabase, ObjectId, OfferedRef, PackBytes,
    SelectedObjects, UploadPackRequest, advertise_version_0, advertise_version_2, error_answer,
    list_refs_answer, push_delimiter, push_flush, push_text,
};
use landfall_item::LockedGitRepository;
use std::io::Read;
use std::sync::Arc;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";

/// Answers a request for a git repository.
pub(crate) async fn respond_git(
    state: &Arc<ServerState>,
    parts: &Parts,
    body: Body,
    route: GitRoute,
) -> Result<ServerResponse, RequestError> {
    let repository = &route.repository;
    let is_version_2 = speaks_version_2(&parts.headers);
    let mut response = match route.service {
        GitService::Advertisement => {
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
                let repository = repository.clone();
                let refs = blocking(move || offered_refs(&database, &repository)).await?;
                advertise_version_0(&refs.map_err(|error| internal(&error))?)
            };
            response_with_body(StatusCode::OK, ADVERTISEMENT, message)
        }
        GitService::UploadPack => {
            if parts.method != Method::POST {
                return Err(not_allowed("POST"));
            }
            let message = read_message(state, parts, body).await?;
            answer_command(state, repository, &message, is_version_2).await?
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
    let bytes = to_bytes(body, most)
        .await
        .map_err(|_| bad("the request is too large or incomplete"))?;
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
    let (read, repository) = (database.clone(), repository.clone());
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
        Err(error @ GitError::MissingObject(_)) => Ok(refusal(error)),
        Err(error) => Err(internal(&error)),
    }
}

/// The objects of a repository. Its packs are verified first.
async fn open_database(
    state: &Arc<ServerState>,
    repository: &LockedGitRepository,
) -> Result<Arc<ObjectDatabase>, RequestError> {
    let open = async || {
        let mut packs: Vec<Arc<dyn PackBytes>> = Vec::new();
        for pack in &repository.packs {
            let (reader, digest) = (state.clone(), pack.digest.clone());
            let holders = blocking(move || blob_holders(&reader.content, &digest)).await??;
            let verified = &state.verified_blobs;
            let holder = verified.intact_holder(&holders, &pack.digest).await?;
            let bytes = BlobPackBytes::new(holder.blobs, pack.digest.clone(), holder.size);
            packs.push(Arc::new(bytes));
        }
        let limits = state.limits;
        let opened = blocking(move || {
            let mut database = ObjectDatabase::new(limits);
            packs
                .into_iter()
                .try_for_each(|pack| database.add_pack(pack))
                .map(|()| database)
        });
        opened
            .await?
            .map_err(|error| RequestError::internal(format!("{}: {error}", repository.name)))
    };
    state
        .git_databases
        .get_or_open(&repository.digest, open)
        .await
}

/// An answer to a command before it is sent.
enum PreparedAnswer {
    /// A message without a pack.
    Message(Vec<u8>),
    /// A pack.
    Pack(PreparedPack),
}

/// A pack before it is sent.
struct PreparedPack {
    /// The bytes before the pack.
    head: Vec<u8>,
    selected: SelectedObjects,
    request: FetchRequest,
}

/// Selects the objects of a pack, and writes the bytes before it.
fn prepare_pack(
    database: &ObjectDatabase,
    request: &FetchRequest,
    refs: &[OfferedRef],
    is_version_2: bool,
) -> Result<PreparedAnswer, GitError> {
    let mut head = Vec::new();
    let known = request.haves.iter().filter(|id| database.contains(**id));
    let common: Vec<&ObjectId> = known.collect();
    if is_version_2 && !request.done {
        push_text(&mut head, "acknowledgments");
        if common.is_empty() {
            push_text(&mut head, "NAK");
            push_flush(&mut head);
            return Ok(PreparedAnswer::Message(head));
        }
        for id in &common {
            push_text(&mut head, &format!("ACK {id}"));
        }
        // one common commit is enough: clients name the newest first
        push_text(&mut head, "ready");
        push_delimiter(&mut head);
    }
    let tags: Vec<ObjectId> = refs
        .iter()
        .filter(|one| one.peeled.is_some())
        .map(|one| one.id)
        .collect();
    let selected = SelectedObjects::new(database, request, &tags)?;
    let has_depth = request.depth.is_some() || (is_version_2 && !request.shallow.is_empty());
    if has_depth {
        if is_version_2 {
            push_text(&mut head, "shallow-info");
        }
        for id in &selected.shallow {
            push_text(&mut head, &format!("shallow {id}"));
        }
        for id in &selected.unshallow {
            push_text(&mut head, &format!("unshallow {id}"));
        }
        if is_version_2 {
            push_delimiter(&mut head);
        } else {
            push_flush(&mut head);
        }
    }
    if is_version_2 {
        push_text(&mut head, "packfile");
    } else {
        match common.first() {
            Some(id) => push_text(&mut head, &format!("ACK {id}")),
            // the client only asks which commits are shallow
            None if !request.done && request.haves.is_empty() => {}
            None => push_text(&mut head, "NAK"),
        }
        if !request.done {
            return Ok(PreparedAnswer::Message(head));
        }
    }
    Ok(PreparedAnswer::Pack(PreparedPack {
        head,
        selected,
        request: request.clone(),
    }))
}

/// The refs of a repository, with `HEAD` if the lock shows which ref a clone checks out.
fn offered_refs(
    database: &ObjectDatabase,
    repository: &LockedGitRepository,
) -> Result<Vec<OfferedRef>, GitError> {
    let mut refs = Vec::new();
    for one in &repository.refs {
        let mut object = database.find(one.id)?;
        while database.kind(object) == GitObjectKind::Tag {
            object = database.find(database.tag_target(object)?.id)?;
        }
        let peeled = database.id(object);
        refs.push(OfferedRef {
            name: one.name.clone(),
            id: one.id,
            peeled: (peeled != one.id).then_some(peeled),
            target: None,
        });
    }
    let of_branch = |one: &&OfferedRef| repository.head.as_ref() == Some(&one.name);
    let head = match refs.iter().find(of_branch) {
        Some(branch) => Some(OfferedRef {
            name: "HEAD".into(),
            target: Some(branch.name.clone()),
            ..branch.clone()
        }),
        // with a single tag, a clone checks it out
        None if refs.len() == 1 => Some(OfferedRef {
            name: "HEAD".into(),
            id: refs[0].peeled.unwrap_or(refs[0].id),
            peeled: None,
            target: None,
        }),
        None => None,
    };
    refs.splice(0..0, head);
    Ok(refs)
}
