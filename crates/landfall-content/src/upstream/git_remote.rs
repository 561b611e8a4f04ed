//! Requests to git servers: the list of refs, and packs (gitprotocol-http, gitprotocol-v2).

use super::file::{expect_success, request, send_with_account};
use crate::registry::RegistrySessions;
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_git::{
    GitError, MAX_ADVERTISEMENT, ObjectId, PackStream, RefListStream, RemoteRef,
    check_advertisement, fetch_request, ls_refs_request,
};
use landfall_http::{BodyFailure, ErrorKind, HttpError, HttpResponse, RequestBody};
use landfall_model::Limits;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use std::fs::File;
use std::io::Write;
use url::Url;

const SERVICE: &str = "git-upload-pack";
const VERSION: HeaderName = HeaderName::from_static("git-protocol");

/// A git server that supports version 2 of the protocol.
struct GitRemote<'a> {
    sessions: &'a RegistrySessions,
    /// The URL of the repository, as the manifest or the lock names it.
    url: &'a str,
    /// The URL of the git service, after redirects.
    answered: Url,
}

/// A pack from a git server.
pub struct FetchedPack {
    /// An unnamed file with the pack.
    pub file: File,
    /// The size of the pack in bytes.
    pub size: u64,
}

/// Lists the branches and tags of the repository at `url`, and `HEAD`.
///
/// # Errors
/// If the server cannot be reached, has no such repository, or does not speak version 2 of the
/// protocol.
pub async fn list_refs(
    sessions: &RegistrySessions,
    url: &str,
) -> Result<Vec<RemoteRef>, HttpError> {
    let limits = *sessions.transport().limits();
    let remote = GitRemote::connect(sessions, url).await?;
    let answer = remote.command(ls_refs_request()).await?;
    let answered = answer.url.clone();
    let protocol = |error: GitError| git_error(error).at(&answered);
    let mut list = RefListStream::new(limits.git_refs);
    let mut left = limits.git_ref_list_bytes;
    let mut body = answer.stream();
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            protocol(GitError::TooLarge {
                what: "the list of refs is larger",
                limit: limits.git_ref_list_bytes as u64,
            })
        })?;
        list.push(&bytes).map_err(protocol)?;
    }
    list.finish().map_err(protocol)
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
) -> Result<FetchedPack, HttpError> {
    let remote = GitRemote::connect(sessions, url).await?;
    let mut attempts = sessions.transport().retry_policy().body_attempts();
    loop {
        let answer = remote.command(fetch_request(wants, haves, depth)).await?;
        match receive_pack(answer, sessions.transport().limits()).await {
            Ok(pack) => return Ok(pack),
            // git's protocol cannot resume a pack
            Err(failure) => attempts.after(failure).await?,
        }
    }
}

async fn receive_pack(
    answer: HttpResponse,
    limits: &Limits,
) -> Result<FetchedPack, BodyFailure<HttpError>> {
    let answered = answer.url.clone();
    let local = |error: std::io::Error| {
        let words = format!("cannot write a temporary file: {error}");
        BodyFailure::Final(HttpError::new(ErrorKind::Local, words))
    };
    let protocol = |error: GitError| BodyFailure::Final(git_error(error).at(&answered));
    let mut file = tempfile::tempfile().map_err(local)?;
    let mut stream = PackStream::default();
    let mut body = answer.stream();
    let mut pack = Vec::new();
    let mut size = 0;
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(BodyFailure::reading)?;
        pack.clear();
        stream.push(&bytes, &mut pack).map_err(protocol)?;
        size += pack.len() as u64;
        if size > limits.git_pack_bytes {
            return Err(protocol(GitError::TooLarge {
                what: "the pack is larger",
                limit: limits.git_pack_bytes,
            }));
        }
        file.write_all(&pack).map_err(local)?;
    }
    // without `Content-Length`, only the protocol shows that a body is complete
    stream.finish().map_err(|error| {
        let error = HttpError::new(ErrorKind::Network, error.to_string()).at(&answered);
        BodyFailure::Broke(error)
    })?;
    Ok(FetchedPack { file, size })
}

impl<'a> GitRemote<'a> {
    /// Checks that the server supports version 2 of the protocol.
    async fn connect(sessions: &'a RegistrySessions, url: &'a str) -> Result<Self, HttpError> {
        let refs = format!("{url}/info/refs?service={SERVICE}");
        let (request, fault) = request(sessions, Method::GET, &refs).await?;
        let requested = request.url.clone();
        let request = request.header(VERSION, "version=2");
        let response = send_with_account(sessions, &request, fault).await?;
        let response = expect_answer(response, SERVICE, "advertisement").await?;
        let answered = service_url(&requested, &response.url, SERVICE)?;
        let listed = response.url.clone();
        // a server that does not know version 2 lists all refs here
        let mut start = Vec::new();
        let mut body = response.stream();
        while start.len() < MAX_ADVERTISEMENT
            && let Some(bytes) = body.next().await
        {
            start.extend_from_slice(&bytes?);
        }
        drop(body);
        check_advertisement(&start).map_err(|error| git_error(error).at(&listed))?;
        Ok(GitRemote {
            sessions,
            url,
            answered,
        })
    }

    /// Sends a command.
    async fn command(&self, message: Vec<u8>) -> Result<HttpResponse, HttpError> {
        let target = format!("{}/{SERVICE}", self.url);
        let (mut request, fault) = request(self.sessions, Method::POST, &target).await?;
        request.url.clone_from(&self.answered);
        request.body = RequestBody::Bytes(Bytes::from(message));
        let request = request
            .header(VERSION, "version=2")
            .header(CONTENT_TYPE, "application/x-git-upload-pack-request")
            .header(ACCEPT, "application/x-git-upload-pack-result");
        let response = send_with_account(self.sessions, &request, fault).await?;
        expect_answer(response, SERVICE, "result").await
    }
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
    let expected = format!("application/x-{service}-{form}");
    if response.header("content-type") == Some(&*expected) {
        return Ok(response);
    }
    if response.is_page() {
        return Err(response.page_error("the repository").await);
    }
    let words =
        "there is no git repository at this URL: the answer is not git's smart HTTP protocol";
    Err(HttpError::new(ErrorKind::Invalid, words).at(&response.url))
}

/// Turns an error of git's formats or protocol into an HTTP error: of kind `Local` if a pack cannot
/// be read or written, and `Invalid` otherwise.
pub fn git_error(error: GitError) -> HttpError {
    let kind = match error {
        GitError::ReadPack(_) | GitError::WritePack(_) => ErrorKind::Local,
        _ => ErrorKind::Invalid,
    };
    HttpError::new(kind, error.to_string())
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
