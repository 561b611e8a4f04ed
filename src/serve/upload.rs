//! The writing half of the distribution API: uploads of blobs.

use super::app::{App, blocking};
use super::content::CONTENT_DIGEST;
use super::name::{Route, query};
use super::pushed::{Incoming, Pushed, Refused};
use super::registry::disk;
use super::reply::{Problem, Reply, empty, set};
use crate::content::BlobRead;
use crate::model::{Algorithm, Digest};
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, LOCATION, RANGE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const UPLOAD_ID: HeaderName = HeaderName::from_static("docker-upload-uuid");
/// How much of a body is gathered before it is hashed and written, in bytes.
const PIECE: usize = 1 << 20;
/// How many pieces are gathered before they are written, however small they are.
const MOST_PIECES: usize = 1024;
/// How long a client may be silent in the middle of a body.
const SILENCE: Duration = Duration::from_secs(120);
/// After what time an upload that nobody goes on with may make room for others.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Uploads that have begun and not ended.
#[derive(Default)]
pub(super) struct Uploads(Mutex<HashMap<String, Arc<Session>>>);

struct Session {
    repository: String,
    used: Mutex<Instant>,
    /// Nothing once it has been kept.
    incoming: tokio::sync::Mutex<Option<Incoming>>,
}

impl Uploads {
    fn add(&self, repository: &str, incoming: Incoming, most: usize) -> Result<String, Problem> {
        let id = incoming.id();
        let session = Session {
            repository: repository.into(),
            used: Mutex::new(Instant::now()),
            incoming: tokio::sync::Mutex::new(Some(incoming)),
        };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= most {
            sessions.retain(|_, session| {
                session.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < ABANDONED
            });
        }
        if sessions.len() >= most {
            let message = format!("{most} uploads are open already; end or cancel some");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS", message));
        }
        sessions.insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    fn get(&self, repository: &str, id: &str) -> Result<Arc<Session>, Problem> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(id).filter(|session| session.repository == repository);
        let session = session.ok_or_else(unknown)?;
        *session.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(session.clone())
    }

    fn remove(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn unknown() -> Problem {
    Problem::not_found("BLOB_UPLOAD_UNKNOWN", "there is no such upload; begin a new one")
}

/// Answers what is neither GET nor HEAD, and the GET of an upload.
pub(super) async fn write(
    app: Arc<App>,
    pushed: Arc<Pushed>,
    parts: Parts,
    route: Route,
    body: Body,
) -> Result<Reply, Problem> {
    match route {
        Route::Manifest(name, reference) => {
            super::put_manifest::put(app, pushed, &parts, name, reference, body).await
        }
        Route::Uploads(name) => begin(app, pushed, &parts, &name, body).await,
        Route::Upload(name, id) => {
            let session = app.uploads.get(&name, &id)?;
            match parts.method {
                Method::PATCH => {
                    let mut slot = session.incoming.lock().await;
                    let size = receive(&mut slot, &name, &parts.headers, body).await?;
                    Ok(status(StatusCode::ACCEPTED, &name, &id, size))
                }
                Method::PUT => {
                    let digest = digest(&parts, "digest")?.ok_or_else(|| {
                        Problem::bad("DIGEST_INVALID", "the last request of an upload needs ?digest=")
                    })?;
                    let mut slot = session.incoming.lock().await;
                    if let Some(incoming) = slot.as_mut() {
                        incoming.expect(digest.algorithm());
                    }
                    receive(&mut slot, &name, &parts.headers, body).await?;
                    let incoming = slot.take().ok_or_else(unknown)?;
                    app.uploads.remove(&id);
                    keep(pushed, incoming, &name, digest).await
                }
                Method::DELETE => {
                    app.uploads.remove(&id);
                    Ok(empty(StatusCode::NO_CONTENT))
                }
                _ => {
                    let slot = session.incoming.lock().await;
                    let size = slot.as_ref().ok_or_else(unknown)?.size;
                    Ok(status(StatusCode::NO_CONTENT, &name, &id, size))
                }
            }
        }
        _ => Err(Problem::method("this cannot be written to")),
    }
}

/// A digest in the query.
fn digest(parts: &Parts, key: &str) -> Result<Option<Digest>, Problem> {
    let text = query(parts.uri.query(), key);
    let digest = text.map(|text| text.parse::<Digest>()).transpose();
    digest.map_err(|error| Problem::bad("DIGEST_INVALID", error.to_string()))
}

/// POST: a mount, a whole blob, or the begin of an upload.
async fn begin(
    app: Arc<App>,
    pushed: Arc<Pushed>,
    parts: &Parts,
    name: &str,
    body: Body,
) -> Result<Reply, Problem> {
    if let Some(digest) = digest(parts, "mount")? {
        let (app, pushed, mounted) = (app.clone(), pushed.clone(), digest.clone());
        if blocking(move || have(&app, &pushed, &mounted)).await??.is_some() {
            return Ok(created(name, &digest));
        }
    }
    if let Some(digest) = digest(parts, "digest")? {
        let mut slot = Some(pushed.begin(digest.algorithm()).map_err(disk)?);
        receive(&mut slot, name, &parts.headers, body).await?;
        return keep(pushed, slot.ok_or_else(unknown)?, name, digest).await;
    }
    let algorithm = match query(parts.uri.query(), "digest-algorithm").as_deref() {
        None | Some("sha256") => Algorithm::Sha256,
        Some("sha512") => Algorithm::Sha512,
        Some(other) => {
            let message = format!("digests by '{other}' are not known here (sha256 and sha512 are)");
            return Err(Problem::bad("DIGEST_INVALID", message));
        }
    };
    let incoming = pushed.begin(algorithm).map_err(disk)?;
    let id = app.uploads.add(name, incoming, app.limits.uploads)?;
    Ok(status(StatusCode::ACCEPTED, name, &id, 0))
}

/// Makes sure that a blob is among what was pushed: it is, or it is copied from a bundle. Gives its size,
/// or nothing where it is nowhere.
pub(super) fn have(app: &App, pushed: &Pushed, digest: &Digest) -> Result<Option<u64>, Problem> {
    if let Some(size) = pushed.stat(digest)? {
        return Ok(Some(size));
    }
    match app.contents.find(digest) {
        Ok((place, size)) => {
            pushed.adopt(&**place, digest).map_err(|refused| refuse(refused, digest))?;
            Ok(Some(size))
        }
        Err(crate::content::ContentError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn keep(pushed: Arc<Pushed>, incoming: Incoming, name: &str, digest: Digest) -> Result<Reply, Problem> {
    let expected = digest.clone();
    let kept = blocking(move || pushed.keep(incoming, &expected)).await?;
    kept.map_err(|refused| refuse(refused, &digest))?;
    Ok(created(name, &digest))
}

pub(super) fn refuse(refused: Refused, digest: &Digest) -> Problem {
    match refused {
        Refused::Digest(found) => {
            Problem::bad("DIGEST_INVALID", format!("what came in is {found}, not {digest}"))
        }
        Refused::Disk(error) => disk(error),
    }
}

fn created(name: &str, digest: &Digest) -> Reply {
    let mut reply = empty(StatusCode::CREATED);
    set(&mut reply, LOCATION, &format!("/v2/{name}/blobs/{digest}"));
    set(&mut reply, CONTENT_DIGEST, &digest.to_string());
    reply
}

fn status(status: StatusCode, name: &str, id: &str, size: u64) -> Reply {
    let mut reply = empty(status);
    set(&mut reply, LOCATION, &format!("/v2/{name}/blobs/uploads/{id}"));
    set(&mut reply, RANGE, &format!("0-{}", size.saturating_sub(1)));
    set(&mut reply, UPLOAD_ID, id);
    reply
}

/// Takes the body in, in pieces; what has come in of a broken body stays. Gives the size so far.
async fn receive(
    slot: &mut Option<Incoming>,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<u64, Problem> {
    let incoming = slot.as_ref().ok_or_else(unknown)?;
    check_range(headers, incoming.size).map_err(|problem| {
        problem
            .with(LOCATION, format!("/v2/{name}/blobs/uploads/{}", incoming.id()))
            .with(RANGE, format!("0-{}", incoming.size.saturating_sub(1)))
    })?;
    let mut stream = body.into_data_stream();
    loop {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut gathered = 0;
        let end = loop {
            match timeout(SILENCE, stream.next()).await {
                Ok(Some(Ok(piece))) => {
                    gathered += piece.len();
                    pieces.push(piece);
                    // small pieces are counted too: each one has its cost
                    if gathered >= PIECE || pieces.len() >= MOST_PIECES {
                        break None;
                    }
                }
                Ok(None) => break Some(Ok(())),
                Ok(Some(Err(error))) => break Some(Err(format!("the body broke off: {error}"))),
                Err(_) => break Some(Err("the body stood still".to_owned())),
            }
        };
        let mut incoming = slot.take().ok_or_else(unknown)?;
        let work = move || {
            let result = pieces.iter().try_for_each(|piece| incoming.write(piece));
            (incoming, result)
        };
        let (incoming, result) = blocking(work).await?;
        let size = incoming.size;
        *slot = Some(incoming);
        result.map_err(disk)?;
        match end {
            None => {}
            Some(Ok(())) => return Ok(size),
            Some(Err(message)) => return Err(Problem::bad("BLOB_UPLOAD_INVALID", message)),
        }
    }
}

/// `Content-Range: FIRST-LAST` must go on where the upload stands and fit the body's length.
fn check_range(headers: &HeaderMap, size: u64) -> Result<(), Problem> {
    let Some(range) = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()) else { return Ok(()) };
    let bare = range.trim().trim_start_matches("bytes").trim().split('/').next().unwrap_or_default();
    let bounds = bare.split_once('-').and_then(|(first, last)| {
        Some((first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?))
    });
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let fits =
        |first: u64, last: u64| length.is_none_or(|length| last.checked_sub(first) == length.checked_sub(1));
    match bounds {
        Some((first, last)) if first == size && first <= last && fits(first, last) => Ok(()),
        Some((first, _)) if first != size => {
            let message = format!("the chunk begins at {first}, but {size} bytes are here");
            Err(Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "BLOB_UPLOAD_INVALID", message))
        }
        _ => Err(Problem::bad("SIZE_INVALID", format!("Content-Range '{range}' does not fit the body"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_must_go_on_where_the_upload_stands() {
        let check = |range: &str, length: &str, size| {
            let headers =
                [(CONTENT_RANGE, range.parse().unwrap()), (CONTENT_LENGTH, length.parse().unwrap())];
            check_range(&HeaderMap::from_iter(headers), size).map_err(|problem| problem.status.as_u16())
        };
        assert_eq!(check("0-9", "10", 0), Ok(()));
        assert_eq!(check("10-19", "10", 10), Ok(()));
        assert_eq!(check("bytes 10-19/30", "10", 10), Ok(()));
        assert_eq!(check("10-19", "10", 0), Err(416));
        assert_eq!(check("0-9", "10", 10), Err(416));
        assert_eq!(check("0-9", "11", 0), Err(400));
        assert_eq!(check("9-0", "10", 9), Err(400));
        assert_eq!(check("x-y", "10", 0), Err(400));
        assert_eq!(check_range(&HeaderMap::new(), 7).map_err(|problem| problem.code), Ok(()));
    }
}
