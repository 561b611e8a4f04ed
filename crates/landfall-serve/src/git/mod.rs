//! Git repositories over git's smart HTTP protocol, read-only: as HOST/PATH below `/git/`,
//! `/files/` and `/`, and at the paths of their original URLs for clients that name the original
//! host.

mod databases;
mod lfs;
mod message;
mod prepared_answer;

use self::message::read_message;
use self::prepared_answer::{PackBody, PreparedAnswer, offered_refs, prepare_pack};
use crate::blobs::blob_response;
use crate::catalog::{GitTable, ServedGitRepository};
use crate::response::{
    Body, RequestError, ServerResponse, answer_permit, blocking, response_in_pieces,
    response_with_body, set_header,
};
use crate::route::{RequestHosts, header_text, query_value};
use crate::state::ServerState;
use crate::verified_blobs::blob_holders;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use landfall_content::BlobPackBytes;
use landfall_git::{
    GitError, ObjectDatabase, OfferedRepository, PackBytes, UploadPackReader, UploadPackRequest,
    advertise_version_0, advertise_version_2, error_answer, list_refs_answer,
};
use landfall_item::LockedGitRepository;
use landfall_model::{Digest, media_type};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

pub(crate) use self::databases::GitDatabases;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";

const RESULT: &str = "application/x-git-upload-pack-result";

/// Answers a request for a git repository.
pub(crate) async fn respond_git(
    state: &Arc<ServerState>,
    parts: &Parts,
    body: Body,
    route: GitRoute,
) -> Result<ServerResponse, RequestError> {
    let methods = match &route {
        GitRoute::Advertisement(_) | GitRoute::LargeFile(..) => "GET, HEAD",
        GitRoute::UploadPack(_) | GitRoute::LargeFiles(_) => "POST",
    };
    if !methods.split(", ").any(|method| parts.method == method) {
        let message = format!("only {methods} is supported here");
        return Err(RequestError::method_not_allowed(message).with_header(ALLOW, methods));
    }
    let is_version_2 = speaks_version_2(&parts.headers);
    let mut response = match &route {
        GitRoute::Advertisement(repository) => {
            let service = query_value(parts.uri.query(), "service");
            if service.as_deref() != Some("git-upload-pack") {
                // `git push`, or a client of the old protocol that downloads single files
                let message = "repositories are read-only here, over git's smart HTTP protocol";
                return Err(RequestError::denied(message));
            }
            if is_version_2 {
                response_with_body(StatusCode::OK, ADVERTISEMENT, advertise_version_2())
            } else {
                let offered = open_repository(state, repository).await?;
                response_in_pieces(ADVERTISEMENT, advertise_version_0(offered))
            }
        }
        GitRoute::UploadPack(repository) => {
            answer_command(state, parts, repository, body, is_version_2).await?
        }
        GitRoute::LargeFiles(repositories) => lfs::answer_batch(repositories, parts, body).await?,
        GitRoute::LargeFile(repositories, digest) => {
            if !lfs::has_file(repositories, digest) {
                let message = format!("the repository has no large file {digest}");
                return Err(RequestError::not_found("BLOB_UNKNOWN", message));
            }
            return blob_response(state, digest, media_type::OCTETS, parts).await;
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

fn internal(error: &GitError) -> RequestError {
    RequestError::internal(error.to_string())
}

/// Whether the client asks for version 2 of the protocol.
fn speaks_version_2(headers: &HeaderMap) -> bool {
    let version = header_text(headers, "git-protocol");
    version.is_some_and(|value| value.split(':').any(|word| word == "version=2"))
}

async fn answer_command(
    state: &Arc<ServerState>,
    parts: &Parts,
    repository: &ServedGitRepository,
    body: Body,
    is_version_2: bool,
) -> Result<ServerResponse, RequestError> {
    let offered = open_repository(state, repository).await?;
    let mut reader = UploadPackReader::new(offered.clone(), is_version_2);
    let mut refused = None;
    let most = state.limits.document_bytes;
    read_message(parts, body, most, |bytes| {
        // the rest of the body is read, because clients read the answer after they have sent it
        if refused.is_none() {
            refused = reader.push(bytes).err();
        }
    })
    .await?;
    // clients show the text of an error packet, and not the body of an error response
    let refusal = |error: GitError| {
        response_with_body(StatusCode::OK, RESULT, error_answer(&error.to_string()))
    };
    let request = match refused {
        None => reader.finish(),
        Some(error) => Err(error),
    };
    let request = match request {
        Ok(UploadPackRequest::ListRefs(request)) => {
            return Ok(response_in_pieces(
                RESULT,
                list_refs_answer(offered, request),
            ));
        }
        Ok(UploadPackRequest::Fetch(request)) => request,
        Err(error) => return Ok(refusal(error)),
    };
    let read = offered.clone();
    // each selection reads all commits and folders that it selects
    let turn = state.git_selections.clone().acquire_owned().await;
    // held until there is memory for the pack: selections that wait for memory use memory
    let prepared = blocking(move || (prepare_pack(&read, request, is_version_2), turn));
    let (prepared, _turn) = prepared.await?;
    match prepared {
        Ok(PreparedAnswer::Message(message)) => {
            Ok(response_with_body(StatusCode::OK, RESULT, message))
        }
        Ok(PreparedAnswer::Pack(pack)) => {
            let body = PackBody {
                permit: answer_permit(state, pack.memory(&offered.database)).await?,
                offered,
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

/// The objects and refs of a repository. Its packs are verified first.
async fn open_repository(
    state: &Arc<ServerState>,
    repository: &ServedGitRepository,
) -> Result<Arc<OfferedRepository>, RequestError> {
    state
        .git_databases
        .get_or_open(&repository.locked.digest, || {
            read_repository(state.clone(), repository.locked.clone())
        })
        .await
}

async fn read_repository(
    state: Arc<ServerState>,
    repository: LockedGitRepository,
) -> Result<OfferedRepository, RequestError> {
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
    let contents = state.git_databases.contents.clone();
    let name = repository.name.clone();
    let opened = blocking(move || {
        let mut database = ObjectDatabase::with_cache(limits, contents);
        for pack in packs {
            database.add_pack(pack)?;
        }
        let refs = offered_refs(&database, &repository)?;
        let shallow = repository.shallow;
        Ok::<_, GitError>(OfferedRepository::new(database, refs, shallow))
    });
    opened
        .await?
        .map_err(|error| RequestError::internal(format!("{name}: {error}")))
}

/// A request of git's smart HTTP protocol, or of Git LFS.
pub(crate) enum GitRoute {
    /// `info/refs`: the refs of a repository, or the capabilities of the server.
    Advertisement(Arc<ServedGitRepository>),
    /// `git-upload-pack`: a command to a repository.
    UploadPack(Arc<ServedGitRepository>),
    /// A batch request of Git LFS for the large files of these repositories.
    LargeFiles(Vec<Arc<ServedGitRepository>>),
    /// The large file with this digest, of one of these repositories.
    LargeFile(Vec<Arc<ServedGitRepository>>, Digest),
}

/// The folder of large files, relative to the URL of a Git LFS server.
const LARGE_FILES: &str = "/objects/";

/// The folders below which repositories are served as HOST/PATH. Like files, repositories are also
/// available at the root, so that the URL in `files` of a site works for both.
const FOLDERS: [&str; 3] = ["/git/", "/files/", "/"];

impl GitRoute {
    /// Parses `path`, which is `host/path`. Returns the path of the repository or the Git LFS
    /// server, and the route to it, which is `None` if it is not served.
    fn of<'p>(repositories: &GitTable, path: &'p str) -> Option<(&'p str, Option<GitRoute>)> {
        let repository = |base| repositories.find(base).cloned();
        let sharing = |base| Some(repositories.with_lfs_server(base)).filter(|all| !all.is_empty());
        if let Some(base) = path.strip_suffix("/info/refs") {
            return Some((base, repository(base).map(GitRoute::Advertisement)));
        }
        if let Some(base) = path.strip_suffix("/git-upload-pack") {
            return Some((base, repository(base).map(GitRoute::UploadPack)));
        }
        let (base, name) = path.rsplit_once(LARGE_FILES)?;
        if name == "batch" {
            return Some((base, sharing(base).map(GitRoute::LargeFiles)));
        }
        let digest = format!("sha256:{name}").parse().ok()?;
        let route = sharing(base).map(|all| GitRoute::LargeFile(all, digest));
        Some((base, route))
    }

    /// Parses the path of a request. Returns `None` if it is not a path of git's protocol. If the
    /// repository is not served, returns an error below `/git/`, and `None` elsewhere.
    pub(crate) fn parse(
        repositories: &GitTable,
        hosts: &RequestHosts,
        path: &str,
    ) -> Option<Result<GitRoute, RequestError>> {
        let path = percent_decode_str(path).decode_utf8().ok()?;
        let (base, _) = GitRoute::of(repositories, &path)?;
        let route = |path: &str| GitRoute::of(repositories, path)?.1;
        // a repository of the host that the client names takes precedence, as with files
        let found = hosts
            .names()
            .find_map(|host| route(&format!("{host}{path}")));
        let mut below = FOLDERS
            .iter()
            .filter_map(|folder| path.strip_prefix(folder));
        match found.or_else(|| below.find_map(route)) {
            Some(found) => Some(Ok(found)),
            None => base.strip_prefix(FOLDERS[0]).map(|name| {
                let message = format!("the repository {name} is not served here");
                Err(RequestError::not_found("NAME_UNKNOWN", message))
            }),
        }
    }
}
