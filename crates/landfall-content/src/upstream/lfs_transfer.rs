//! Downloads and uploads large files of git repositories (git-lfs,
//! docs/api/basic-transfers.md).

use super::file::{expect_success, send_with_account, status_error};
use super::lfs_batch::{BatchAnswer, LFS_BATCH, LFS_MEDIA_TYPE, LfsAction, LfsOperation, batch};
use crate::registry::RegistrySessions;
use crate::{BlobRead, LfsServer, OpenedPart, read_blocking};
use bytes::Bytes;
use futures_util::FutureExt;
use landfall_http::{ErrorKind, HttpError, HttpResponse, RequestBody, send_from_offset};
use landfall_model::{Descriptor, Digest};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RANGE};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The large files that a Git LFS server offers for download, and why it does not offer the first
/// of the others.
#[derive(Debug, Default)]
pub struct OfferedLargeFiles {
    /// The files that can be downloaded.
    pub offered: BTreeSet<Digest>,
    /// The error for the first file that cannot, or for the request. `None` if all files can be
    /// downloaded.
    pub error: Option<HttpError>,
}

/// Asks a Git LFS server which of these large files it offers. Downloads nothing.
pub async fn offered_large_files(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
) -> OfferedLargeFiles {
    let mut found = OfferedLargeFiles::default();
    for files in files.chunks(LFS_BATCH) {
        let answer = match batch(sessions, server, files, LfsOperation::Download).await {
            Ok(answer) => answer,
            Err(error) => {
                found.error = Some(error);
                break;
            }
        };
        for file in files {
            let download = answer.actions(server, &file.digest).and_then(|actions| {
                expect_download(actions.download.as_ref(), &file.digest).map(drop)
            });
            match download {
                Ok(()) => {
                    found.offered.insert(file.digest.clone());
                }
                Err(error) => {
                    found.error.get_or_insert(error);
                }
            }
        }
    }
    found
}

fn expect_download<'a>(
    download: Option<&'a LfsAction>,
    digest: &Digest,
) -> Result<&'a LfsAction, HttpError> {
    let lacks = || {
        let words = format!("the large file {digest} cannot be downloaded");
        HttpError::new(ErrorKind::NotFound, words)
    };
    download.ok_or_else(lacks)
}

/// Opens a large file of a Git LFS server, beginning at `offset`.
pub(super) async fn open_large_file(
    sessions: &RegistrySessions,
    server: &LfsServer,
    file: &Descriptor,
    offset: u64,
) -> Result<OpenedPart, HttpError> {
    let files = std::slice::from_ref(file);
    let answer = batch(sessions, server, files, LfsOperation::Download).await?;
    let download = &answer.actions(server, &file.digest)?.download;
    let download = expect_download(download.as_ref(), &file.digest)?;
    let (target, _) = sessions.file_url(&download.href)?;
    let asked = &answer.server;
    let send = |range: Option<String>| async move {
        let (request, fault) = download.request(sessions, Method::GET, asked).await?;
        let request = range
            .iter()
            .fold(request, |request, range| request.header(RANGE, range));
        send_with_account(sessions, &request, fault).await
    };
    let transport = sessions.transport();
    let (start, response) = send_from_offset(transport, &target, offset, file.size, send).await?;
    let response = expect_success(response).await?;
    let rest = file.size.saturating_sub(start);
    let stream = response.content_stream(rest, "the large file").await?;
    let transport = transport.clone();
    Ok(OpenedPart::ranged(start, stream, move || {
        transport.distrust_ranges(&target);
    }))
}

/// Returns the number of large files that a Git LFS server lacks. Uploads nothing.
///
/// # Errors
/// If the server cannot be reached, does not support Git LFS, or refuses a file.
pub async fn missing_large_files(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
) -> Result<usize, HttpError> {
    let mut missing = 0;
    for files in files.chunks(LFS_BATCH) {
        let answer = upload_actions(sessions, server, files).await?;
        for file in files {
            let actions = answer.actions(server, &file.digest)?;
            missing += usize::from(actions.upload.is_some());
        }
    }
    Ok(missing)
}

async fn upload_actions(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
) -> Result<BatchAnswer, HttpError> {
    let answer = batch(sessions, server, files, LfsOperation::Upload).await;
    answer.map_err(|error| match error.kind {
        ErrorKind::NotFound => {
            let words = format!("the server does not accept large files (Git LFS): {error}");
            HttpError::new(ErrorKind::Invalid, words)
        }
        _ => error,
    })
}

/// Uploads the large files that a Git LFS server lacks, from `blobs`. Returns their number.
///
/// The URLs in an answer of the server may expire before all files are uploaded. Therefore, if an
/// upload is refused after another upload succeeded, the server is asked again for the remaining
/// files.
///
/// # Errors
/// If the server cannot be reached, does not support Git LFS, or refuses a file.
pub async fn upload_large_files(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
    blobs: &Arc<dyn BlobRead>,
) -> Result<usize, HttpError> {
    let mut uploaded = 0;
    for files in files.chunks(LFS_BATCH) {
        let mut answer = upload_actions(sessions, server, files).await?;
        // whether a file was uploaded since the server answered
        let mut has_progress = false;
        for (at, file) in files.iter().enumerate() {
            let mut result = upload_missing(sessions, server, &answer, file, blobs).await;
            if has_progress && result.as_ref().is_err_and(may_have_expired) {
                answer = upload_actions(sessions, server, &files[at..]).await?;
                has_progress = false;
                result = upload_missing(sessions, server, &answer, file, blobs).await;
            }
            if result? {
                uploaded += 1;
                has_progress = true;
            }
        }
    }
    Ok(uploaded)
}

/// Whether `error` is a refusal that a new answer of the server may prevent.
fn may_have_expired(error: &HttpError) -> bool {
    matches!(error.status, Some(401 | 403 | 410))
}

/// Uploads a file and confirms the upload, as `answer` demands. Returns false if the server has the
/// file.
async fn upload_missing(
    sessions: &RegistrySessions,
    server: &LfsServer,
    answer: &BatchAnswer,
    file: &Descriptor,
    blobs: &Arc<dyn BlobRead>,
) -> Result<bool, HttpError> {
    let actions = answer.actions(server, &file.digest)?;
    let Some(upload) = &actions.upload else {
        return Ok(false);
    };
    upload_one(sessions, &answer.server, file, upload, blobs).await?;
    if let Some(verify) = &actions.verify {
        verify_one(sessions, &answer.server, file, verify).await?;
    }
    Ok(true)
}

async fn upload_one(
    sessions: &RegistrySessions,
    server: &str,
    file: &Descriptor,
    upload: &LfsAction,
    blobs: &Arc<dyn BlobRead>,
) -> Result<(), HttpError> {
    let (mut request, fault) = upload.request(sessions, Method::PUT, server).await?;
    if !request.headers.contains_key(CONTENT_TYPE) {
        request = request.header(CONTENT_TYPE, "application/octet-stream");
    }
    let blobs = blobs.clone();
    let digest = file.digest.clone();
    let open = move || {
        let opened = blobs.open_whole(&digest);
        let opened = opened
            .map(read_blocking)
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()));
        async move { opened }.boxed()
    };
    request.body = RequestBody::Stream {
        length: file.size,
        open: Arc::new(open),
    };
    let response = send_with_account(sessions, &request, fault).await?;
    expect_created(response, "an upload").await
}

/// Tells the server that a file was uploaded, so that the server compares the size.
async fn verify_one(
    sessions: &RegistrySessions,
    server: &str,
    file: &Descriptor,
    verify: &LfsAction,
) -> Result<(), HttpError> {
    let (request, fault) = verify.request(sessions, Method::POST, server).await?;
    let mut request = request
        .header(ACCEPT, LFS_MEDIA_TYPE)
        .header(CONTENT_TYPE, LFS_MEDIA_TYPE);
    let message = json!({"oid": file.digest.hex(), "size": file.size});
    request.body = RequestBody::Bytes(Bytes::from(message.to_string()));
    let response = send_with_account(sessions, &request, fault).await?;
    expect_created(response, "the check of an upload").await
}

/// Checks that the status is a success: servers answer an upload with 200, 201 or 204, depending on
/// their storage.
async fn expect_created(response: HttpResponse, what: &str) -> Result<(), HttpError> {
    if response.status.is_success() {
        return Ok(());
    }
    Err(status_error(response, &format!(" to {what} of Git LFS")).await)
}
