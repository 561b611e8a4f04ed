//! Pushes refs and objects to a git server.

use super::file::{request, send_with_account};
use super::git_remote::{expect_answer, git_error, service_url};
use super::git_writer::FileFrom;
use crate::read_blocking;
use crate::registry::RegistrySessions;
use futures_util::FutureExt;
use landfall_git::{ObjectId, ReceiveAdvertisement, RefUpdate, check_report};
use landfall_http::{HttpError, RequestBody};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use std::fs::File;
use std::io::{Cursor, Read};
use std::sync::Arc;
use url::Url;

const SERVICE: &str = "git-receive-pack";

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
    let target = format!("{url}/info/refs?service={SERVICE}");
    let (request, fault) = request(sessions, Method::GET, &target).await?;
    let response = send_with_account(sessions, &request, fault).await?;
    let response = expect_answer(response, SERVICE, "advertisement").await?;
    let answered = service_url(&request.url, &response.url, SERVICE)?;
    let listed = response.url.clone();
    let bytes = response.bytes(limits.git_ref_list_bytes).await?;
    let advertisement = ReceiveAdvertisement::parse(&bytes, limits.git_refs)
        .map_err(|error| git_error(error).at(&listed))?;
    Ok(GitReceiver {
        advertisement,
        answered,
    })
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
    let target = format!("{url}/{SERVICE}");
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
        let pack = FileFrom::new(pack.clone(), 0);
        let body = read_blocking(Box::new(Cursor::new(head.clone()).chain(pack)));
        async move { Ok(body) }.boxed()
    };
    request.body = RequestBody::Stream {
        length,
        open: Arc::new(open),
    };
    // the server may have made the changes although its answer was lost
    request.retried = false;
    let response = send_with_account(sessions, &request, fault).await?;
    let response = expect_answer(response, SERVICE, "result").await?;
    let answered = response.url.clone();
    let limits = sessions.transport().limits();
    let report = response.bytes(limits.git_ref_list_bytes).await?;
    check_report(&report, &push.updates).map_err(|error| git_error(error).at(&answered))
}
