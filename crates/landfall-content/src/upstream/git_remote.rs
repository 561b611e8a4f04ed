//! Requests to git servers: the list of refs, packs, and pushes (gitprotocol-http, gitprotocol-v2).

use super::file::{expect_success, request, send_with_account};
use crate::local_content::open_local_repository;
use crate::registry::RegistrySessions;
use crate::{GitPacks, read_blocking};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use landfall_git::{
    Advertisement, AdvertisementStream, GitError, GitPackPlan, ObjectDatabase, ObjectId,
    OfferedRef, PackStream, ReceiveAdvertisement, RefListStream, RefUpdate, check_report,
    is_whole_advertisement, ls_refs_request, write_pack,
};
use landfall_http::{BodyFailure, ErrorKind, HttpError, HttpResponse, RequestBody};
use landfall_model::{Algorithm, Digest, HashedStream, Limits};
use landfall_os::FileExt;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use url::Url;

const SERVICE: &str = "git-upload-pack";
const VERSION: HeaderName = HeaderName::from_static("git-protocol");

/// A git server.
struct GitRemote<'a> {
    sessions: &'a RegistrySessions,
    /// The URL of the repository, as the manifest or the lock names it.
    url: &'a str,
    /// The URL of the git service, after redirects.
    answered: Url,
    offered: Advertisement,
}

/// Lists the branches and tags of the repository at `url`, and `HEAD`.
///
/// # Errors
/// If the server cannot be reached, has no such repository, or does not speak git's smart
/// protocol.
pub async fn list_refs(
    sessions: &RegistrySessions,
    url: &str,
) -> Result<Vec<OfferedRef>, HttpError> {
    let mut remote = GitRemote::connect(sessions, url).await?;
    if let Some(refs) = remote.offered.refs.take() {
        return Ok(refs);
    }
    let limits = sessions.transport().limits();
    let receive = async || {
        let answer = remote.command(ls_refs_request()).await?;
        let mut list = RefListStream::new(limits.git_refs);
        let answered = read_list(answer, limits, |bytes| list.push(bytes)).await?;
        list.finish().map_err(|error| cut_off(error, &answered))
    };
    sessions.transport().retry_policy().read_body(receive).await
}

/// Reads an answer that may contain a list of refs with `push`, piece by piece. Returns its URL.
async fn read_list(
    answer: HttpResponse,
    limits: &Limits,
    mut push: impl FnMut(&[u8]) -> Result<(), GitError>,
) -> Result<Url, BodyFailure<HttpError>> {
    let answered = answer.url.clone();
    let protocol = |error: GitError| BodyFailure::Final(git_error(error).at(&answered));
    let mut left = limits.git_ref_list_bytes;
    let mut body = answer
        .message_stream("the answer of the git server")
        .map_err(BodyFailure::Final)?;
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(BodyFailure::reading)?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            protocol(GitError::TooLarge {
                what: "the list of refs is larger",
                limit: limits.git_ref_list_bytes as u64,
            })
        })?;
        push(&bytes).map_err(protocol)?;
    }
    Ok(answered)
}

/// The failure of an answer that is not complete. Without `Content-Length`, only the protocol shows
/// that.
fn cut_off(error: GitError, answered: &Url) -> BodyFailure<HttpError> {
    BodyFailure::Broke(HttpError::new(ErrorKind::Network, error.to_string()).at(answered))
}

/// Fetches a pack with all objects that are reachable from `wants` but not from `haves`, into an
/// unnamed file. With a `depth`, only the last commits of each history are fetched.
///
/// # Errors
/// If the server cannot be reached, refuses, or sends more than the limit.
pub async fn fetch_pack(
    sessions: &RegistrySessions,
    url: &str,
    wants: &[ObjectId],
    haves: &[ObjectId],
    depth: Option<u32>,
) -> Result<File, HttpError> {
    let remote = GitRemote::connect(sessions, url).await?;
    let request = remote.offered.fetch_request(wants, haves, depth);
    let request = request.map_err(|error| git_error(error).at(&remote.answered))?;
    // git's protocol cannot resume a pack
    let receive = async || {
        let answer = remote.command(request.clone()).await?;
        let stream = remote.offered.pack_stream();
        receive_pack(answer, stream, sessions.transport().limits()).await
    };
    sessions.transport().retry_policy().read_body(receive).await
}

async fn receive_pack(
    answer: HttpResponse,
    mut stream: PackStream,
    limits: &Limits,
) -> Result<File, BodyFailure<HttpError>> {
    let answered = answer.url.clone();
    let local = |error: std::io::Error| {
        let words = format!("cannot write a temporary file: {error}");
        BodyFailure::Final(HttpError::new(ErrorKind::Local, words))
    };
    let protocol = |error: GitError| BodyFailure::Final(git_error(error).at(&answered));
    let mut file = tempfile::tempfile().map_err(local)?;
    let mut body = answer
        .message_stream("the answer of the git server")
        .map_err(BodyFailure::Final)?;
    let mut pack = Vec::new();
    let mut size = 0;
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(BodyFailure::reading)?;
        pack.clear();
        stream.push(&bytes, &mut pack).map_err(protocol)?;
        size += pack.len() as u64;
        GitError::check_limit("the pack is larger", size, limits.git_pack_bytes)
            .map_err(protocol)?;
        file.write_all(&pack).map_err(local)?;
    }
    stream.finish().map_err(|error| cut_off(error, &answered))?;
    Ok(file)
}

impl<'a> GitRemote<'a> {
    /// Asks the server for version 2 of the protocol.
    async fn connect(sessions: &'a RegistrySessions, url: &'a str) -> Result<Self, HttpError> {
        let refs = format!("{url}/info/refs?service={SERVICE}");
        let (request, fault) = request(sessions, Method::GET, &refs).await?;
        let requested = request.url.clone();
        let request = request.header(VERSION, "version=2");
        let limits = sessions.transport().limits();
        let receive = async || {
            let response = send_with_account(sessions, &request, fault.as_ref()).await?;
            let response = expect_answer(response, SERVICE, "advertisement").await?;
            let answered = service_url(&requested, &response.url, SERVICE)?;
            let mut offered = AdvertisementStream::new(limits.git_refs);
            let listed = read_list(response, limits, |bytes| offered.push(bytes)).await?;
            let offered = offered.finish().map_err(|error| cut_off(error, &listed))?;
            Ok(GitRemote {
                sessions,
                url,
                answered,
                offered,
            })
        };
        sessions.transport().retry_policy().read_body(receive).await
    }

    /// Sends a command, or the request for a pack of version 0.
    async fn command(&self, message: Vec<u8>) -> Result<HttpResponse, HttpError> {
        let target = format!("{}/{SERVICE}", self.url);
        let (mut request, fault) = request(self.sessions, Method::POST, &target).await?;
        request.url.clone_from(&self.answered);
        request.body = RequestBody::Bytes(Bytes::from(message));
        if self.offered.is_version_2() {
            request = request.header(VERSION, "version=2");
        }
        let request = request
            .header(CONTENT_TYPE, "application/x-git-upload-pack-request")
            .header(ACCEPT, "application/x-git-upload-pack-result");
        let response = send_with_account(self.sessions, &request, fault.as_ref()).await?;
        expect_answer(response, SERVICE, "result").await
    }
}

/// The failure of the first answer of a server, `message`, which cannot be used.
fn unusable(error: GitError, message: &[u8], listed: &Url) -> BodyFailure<HttpError> {
    let is_final = match error {
        // what follows the server's own error, or the limit, is not read
        GitError::Remote(_) | GitError::TooLarge { .. } => true,
        _ => is_whole_advertisement(message),
    };
    if is_final {
        return BodyFailure::Final(git_error(error).at(listed));
    }
    cut_off(GitError::Protocol("the answer is cut off".into()), listed)
}

/// The URL of `service`, if the request for the list of refs at `requested` was answered at
/// `answered`. Fails if that is another host: the other requests would have to follow the redirect,
/// and POST must not be redirected.
pub(super) fn service_url(
    requested: &Url,
    answered: &Url,
    service: &str,
) -> Result<Url, HttpError> {
    if answered.origin() != requested.origin() {
        let words = "it redirects to another host; use the URL of that host";
        return Err(HttpError::new(ErrorKind::Invalid, words).at(answered));
    }
    let path = answered.path();
    let path = path.strip_suffix("/info/refs").unwrap_or(path);
    let mut url = answered.clone();
    url.set_path(&format!("{path}/{service}"));
    url.set_query(None);
    Ok(url)
}

/// Returns the response if a git server sent it.
pub(super) async fn expect_answer(
    response: HttpResponse,
    service: &str,
    form: &str,
) -> Result<HttpResponse, HttpError> {
    let response = expect_success(response).await?;
    if response.has_type(&format!("application/x-{service}-{form}")) {
        return Ok(response);
    }
    if response.says_page() {
        return Err(response.page_error("the repository").await);
    }
    let words =
        "there is no git repository at this URL: the answer is not git's smart HTTP protocol";
    Err(HttpError::new(ErrorKind::Invalid, words).at(&response.url))
}

/// Turns an error of git's formats or protocol into an HTTP error: of kind `Local` if a pack or a
/// repository on this machine cannot be read or written, and `Invalid` otherwise.
pub fn git_error(error: GitError) -> HttpError {
    let kind = match error {
        GitError::ReadPack(_) | GitError::WritePack(_) | GitError::LocalRepository(_) => {
            ErrorKind::Local
        }
        _ => ErrorKind::Invalid,
    };
    HttpError::new(kind, error.to_string())
}

const RECEIVE_PACK: &str = "git-receive-pack";

/// A repository at a git server that accepts pushes.
pub struct GitReceiver {
    /// The refs and capabilities of the server.
    pub advertisement: ReceiveAdvertisement,
    /// The URL to which pushes are sent, after redirects.
    answered: Url,
}

/// Requests the refs of the server at `url`, for a push.
///
/// # Errors
/// If the server cannot be reached, or refuses pushes.
pub async fn pushed_refs(sessions: &RegistrySessions, url: &str) -> Result<GitReceiver, HttpError> {
    let limits = *sessions.transport().limits();
    let target = format!("{url}/info/refs?service={RECEIVE_PACK}");
    let (request, fault) = request(sessions, Method::GET, &target).await?;
    let receive = async || {
        let response = send_with_account(sessions, &request, fault.as_ref()).await?;
        let response = expect_answer(response, RECEIVE_PACK, "advertisement").await?;
        let answered = service_url(&request.url, &response.url, RECEIVE_PACK)?;
        let listed = response.url.clone();
        let bytes = response.bytes(limits.git_ref_list_bytes).await;
        let bytes = bytes.map_err(BodyFailure::reading)?;
        let advertisement = ReceiveAdvertisement::parse(&bytes, limits.git_refs)
            .map_err(|error| unusable(error, &bytes, &listed))?;
        Ok(GitReceiver {
            advertisement,
            answered,
        })
    };
    sessions.transport().retry_policy().read_body(receive).await
}

/// A push: the changes of refs, and the objects that the server needs for them.
pub struct GitPush {
    /// The changes of refs.
    pub updates: Vec<RefUpdate>,
    /// The commits whose parents are not sent.
    pub shallow: Vec<ObjectId>,
    /// The pack with the objects that the server lacks.
    pub pack: Arc<File>,
    /// The size of the pack in bytes.
    pub size: u64,
}

/// Changes refs of `receiver`, the server at `url`, and sends the pack with the objects that they
/// need.
///
/// # Errors
/// If the server cannot be reached, or refuses a change. After a refusal, a server with atomic
/// pushes has changed nothing.
pub async fn push_refs(
    sessions: &RegistrySessions,
    url: &str,
    receiver: &GitReceiver,
    push: &GitPush,
) -> Result<(), HttpError> {
    let target = format!("{url}/{RECEIVE_PACK}");
    let (mut request, fault) = request(sessions, Method::POST, &target).await?;
    // the rest of the URL is the same, and may have an account
    request.url.set_path(receiver.answered.path());
    let mut request = request
        .header(CONTENT_TYPE, "application/x-git-receive-pack-request")
        .header(ACCEPT, "application/x-git-receive-pack-result");
    let head: Arc<[u8]> = receiver
        .advertisement
        .push_head(&push.updates, &push.shallow)
        .into();
    let length = head.len() as u64 + push.size;
    let pack = push.pack.clone();
    let open = move || {
        let pack = FileFrom {
            file: pack.clone(),
            at: 0,
        };
        let body = read_blocking(Box::new(Cursor::new(head.clone()).chain(pack)));
        async move { Ok(body) }.boxed()
    };
    request.body = RequestBody::Stream {
        length,
        open: Arc::new(open),
    };
    // the server may have made the changes although its answer was lost
    request.retried = false;
    let response = send_with_account(sessions, &request, fault.as_ref()).await?;
    let response = expect_answer(response, RECEIVE_PACK, "result").await?;
    let answered = response.url.clone();
    let limits = sessions.transport().limits();
    let report = response.bytes(limits.git_ref_list_bytes).await?;
    check_report(&report, &push.updates).map_err(|error| git_error(error).at(&answered))
}

// Writes landfall's packs of a git repository from the pack that its server sends.

/// Writes the pack of `plan` into `file`. Returns the SHA-256 of the pack, and its size in bytes.
///
/// # Errors
/// If an object cannot be read, or the file cannot be written.
pub fn write_pack_file(
    database: &ObjectDatabase,
    plan: &GitPackPlan,
    file: &File,
) -> Result<(Digest, u64), GitError> {
    let mut hashed = HashedStream::new(file, Algorithm::Sha256);
    let mut buffered = BufWriter::with_capacity(256 << 10, &mut hashed);
    let size = write_pack(database, plan, &mut buffered)?;
    buffered.flush().map_err(GitError::WritePack)?;
    drop(buffered);
    let (_, digest) = hashed.finish();
    Ok((digest, size))
}

/// Reads a file from an offset, without moving the position that all readers of the file share.
pub(super) struct FileFrom {
    pub(super) file: Arc<File>,
    /// The offset of the next byte.
    pub(super) at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Fetches a repository and writes all its packs into unnamed files.
pub(super) async fn fetch_packs(
    sessions: &RegistrySessions,
    folder: &Path,
    packs: Arc<GitPacks>,
) -> Result<Vec<Arc<File>>, HttpError> {
    let written = write_packs(sessions, folder, packs, |database, plan| {
        let file = tempfile::tempfile().map_err(GitError::WritePack)?;
        write_pack_file(database, plan, &file)?;
        Ok(Arc::new(file))
    });
    written.await
}

/// Fetches a repository, or reads it if it is next to the lock in `folder`, and lets `write` write
/// each of its packs by a plan.
///
/// # Errors
/// If the repository cannot be fetched or read, or a pack cannot be written.
pub async fn write_packs<T: Send + 'static>(
    sessions: &RegistrySessions,
    folder: &Path,
    packs: Arc<GitPacks>,
    write: impl Fn(&ObjectDatabase, &GitPackPlan) -> Result<T, GitError> + Send + 'static,
) -> Result<Vec<T>, HttpError> {
    let fetched = match &packs.path {
        None => {
            let tips = packs.tips_before(packs.packs.len());
            Some(fetch_pack(sessions, &packs.url, &tips, &[], packs.depth).await?)
        }
        Some(_) => None,
    };
    let limits = *sessions.transport().limits();
    let busy = sessions.transport().activity().busy();
    let folder = folder.to_owned();
    let writing = move || {
        let path = packs.path.as_deref().unwrap_or_default();
        let Some(fetched) = fetched else {
            let local = |error: String| HttpError::new(ErrorKind::Local, error);
            let database = open_local_repository(&folder, path, limits).map_err(local)?;
            return write_all(database, &packs, write)
                .map_err(|error| local(changed_repository(path, &error)));
        };
        let mut database = ObjectDatabase::new(limits);
        let added = database.add_pack(Arc::new(fetched));
        added
            .and_then(|()| write_all(database, &packs, write))
            .map_err(git_error)
    };
    let written = spawn_blocking(writing).await?;
    drop(busy);
    written
}

/// Why the packs of the lock cannot be written from the repository at `path`.
fn changed_repository(path: &str, error: &GitError) -> String {
    match error {
        GitError::MissingObject { .. } => format!(
            "{path} changed after it was locked: {error}; restore the repository, or run `landfall \
             lock` to accept the change"
        ),
        _ => error.to_string(),
    }
}

/// Writes all packs of a repository from its objects.
fn write_all<T>(
    mut database: ObjectDatabase,
    packs: &GitPacks,
    write: impl Fn(&ObjectDatabase, &GitPackPlan) -> Result<T, GitError>,
) -> Result<Vec<T>, GitError> {
    database.set_shallow(&packs.shallow);
    let mut written = Vec::new();
    for (at, pack) in packs.packs.iter().enumerate() {
        let plan = GitPackPlan::new(&database, &pack.tips, &packs.tips_before(at))?;
        written.push(write(&database, &plan)?);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_after_the_first_go_where_the_server_redirected_it() {
        let url = |text: &str| Url::parse(text).unwrap();
        let requested = url("https://h/team/a/info/refs?service=git-receive-pack");
        let service = |answered: &str| {
            let found = service_url(&requested, &url(answered), "git-receive-pack");
            found.ok().map(String::from)
        };
        assert_eq!(
            service(requested.as_str()).as_deref(),
            Some("https://h/team/a/git-receive-pack")
        );
        // GitLab adds `.git`
        assert_eq!(
            service("https://h/team/a.git/info/refs?service=git-receive-pack").as_deref(),
            Some("https://h/team/a.git/git-receive-pack")
        );
        assert_eq!(service("http://h/team/a/info/refs"), None);
    }
}
