//! Downloads and uploads large files of git repositories (git-lfs,
//! docs/api/basic-transfers.md).

use super::file::{expect_success, request, send_with_account, status_error};
use crate::registry::RegistrySessions;
use crate::{BlobRead, LfsServer, OpenedPart, read_blocking};
use futures_util::FutureExt;
use landfall_http::{
    BodyFailure, ErrorKind, HttpError, HttpRequest, HttpResponse, RequestBody, RequestPurpose,
    host_port, send_from_offset,
};
use landfall_model::{Descriptor, Digest, Failure, from_json, keeping_https, redact_urls};
use reqwest::Method;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, RANGE,
    TRANSFER_ENCODING,
};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use url::Url;

/// Asks a Git LFS server which of these large files it offers. Downloads nothing. Returns the files
/// that can be downloaded, and the error for the first one that cannot, or for the request.
pub async fn offered_large_files(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
) -> (BTreeSet<Digest>, Option<HttpError>) {
    let (mut offered, mut failed) = (BTreeSet::new(), None);
    for files in files.chunks(LFS_BATCH) {
        let answer = match batch(sessions, server, files, LfsOperation::Download).await {
            Ok(answer) => answer,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        for file in files {
            let download = answer.actions(server, &file.digest).and_then(|actions| {
                expect_download(actions.download.as_ref(), &file.digest).map(drop)
            });
            match download {
                Ok(()) => {
                    offered.insert(file.digest.clone());
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
    }
    (offered, failed)
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
        let request = request.optional_header(RANGE, range.as_deref());
        send_with_account(sessions, &request, fault.as_ref()).await
    };
    let transport = sessions.transport();
    let (start, response) = send_from_offset(transport, &target, offset, file.size, send).await?;
    let response = expect_success(response).await?;
    let rest = file.size.saturating_sub(start);
    let stream = response.content_stream(rest, "the large file").await?;
    Ok(OpenedPart::ranged(start, stream, transport, &target))
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

/// Whether `error` is a refusal that a new answer of the server may prevent. The object stores of
/// Google, and of Amazon for temporary credentials, answer 400 to an expired URL.
fn may_have_expired(error: &HttpError) -> bool {
    matches!(error.status, Some(400 | 401 | 403 | 410))
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
    let response = send_with_account(sessions, &request, fault.as_ref()).await?;
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
    let message = json!({"oid": file.digest.hex(), "size": file.size});
    let request = with_message(request, &message);
    let response = send_with_account(sessions, &request, fault.as_ref()).await?;
    expect_created(response, "the check of an upload").await
}

/// Adds a message to a request of Git LFS.
fn with_message(request: HttpRequest, message: &Value) -> HttpRequest {
    HttpRequest {
        body: RequestBody::Bytes(message.to_string().into()),
        ..request
            .header(ACCEPT, LFS_MEDIA_TYPE)
            .header(CONTENT_TYPE, LFS_MEDIA_TYPE)
    }
}

/// Checks that the status is a success: servers answer an upload with 200, 201 or 204, depending on
/// their storage.
async fn expect_created(response: HttpResponse, what: &str) -> Result<(), HttpError> {
    if response.status.is_success() {
        return Ok(());
    }
    Err(status_error(response, &format!(" to {what} of Git LFS")).await)
}

pub(super) const LFS_MEDIA_TYPE: &str = "application/vnd.git-lfs+json";
/// The largest number of files in one request. GitHub accepts 100.
pub(super) const LFS_BATCH: usize = 100;
/// Headers that a server must not set for a transfer.
const OWN_HEADERS: [HeaderName; 5] = [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, RANGE];

/// What is done with large files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LfsOperation {
    Download,
    Upload,
}

/// The answer to a batch request.
#[derive(Debug, Deserialize)]
pub(super) struct BatchAnswer {
    /// The server that answered, as `host:port`.
    #[serde(skip)]
    pub(super) server: String,
    #[serde(default, deserialize_with = "few_objects")]
    objects: Vec<BatchObject>,
}

#[derive(Debug, Deserialize)]
struct BatchObject {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    oid: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    actions: BatchActions,
    /// The name of `actions` in the first version of the batch API, which git-lfs still reads.
    #[serde(default, rename = "_links", deserialize_with = "lenient")]
    links: Option<BatchActions>,
    error: Option<BatchError>,
}

/// The requests for one file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BatchActions {
    pub(super) download: Option<LfsAction>,
    /// `None` if the server has the file.
    pub(super) upload: Option<LfsAction>,
    /// The request to send after an upload.
    pub(super) verify: Option<LfsAction>,
}

/// A request that the server asks for.
#[derive(Debug, Deserialize)]
pub(super) struct LfsAction {
    pub(super) href: String,
    /// Headers whose values are not strings are left out.
    #[serde(default, deserialize_with = "text_headers")]
    header: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct BatchError {
    /// The status; `None` if it is not a number.
    #[serde(default, deserialize_with = "lenient")]
    code: Option<u16>,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    message: String,
}

/// Reads a value of another type as `None`, without keeping it.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let value = <&RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(value.get()).ok())
}

/// Reads at most as many objects as one request names: each takes much more memory than its text.
fn few_objects<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<BatchObject>, D::Error> {
    let objects = Option::<Vec<&RawValue>>::deserialize(from)?.unwrap_or_default();
    if objects.len() > LFS_BATCH {
        let why = format!("more than {LFS_BATCH} objects");
        return Err(D::Error::custom(why));
    }
    let objects = objects
        .iter()
        .map(|object| serde_json::from_str(object.get()));
    objects.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// Reads the headers of a request.
fn text_headers<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let headers = Option::<BTreeMap<String, &RawValue>>::deserialize(from)?.unwrap_or_default();
    let texts = headers.into_iter().filter_map(|(name, value)| {
        let value = serde_json::from_str(value.get()).ok()?;
        Some((name, value))
    });
    Ok(texts.collect())
}

/// Asks a Git LFS server how these files are transferred.
pub(super) async fn batch(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
    operation: LfsOperation,
) -> Result<BatchAnswer, HttpError> {
    let answer = send_batch(sessions, server, files, operation).await;
    answer.map_err(|error| with_origin(error, server))
}

/// The error with the file that names the server, unless the user named it.
fn with_origin(error: HttpError, server: &LfsServer) -> HttpError {
    match &server.named_by {
        Some(by) => {
            let by = redact_urls(by);
            error.hint(&format!(
                " (the .lfsconfig of {by} names this Git LFS server)"
            ))
        }
        None => error,
    }
}

async fn send_batch(
    sessions: &RegistrySessions,
    server: &LfsServer,
    files: &[Descriptor],
    operation: LfsOperation,
) -> Result<BatchAnswer, HttpError> {
    if let Some(by) = &server.named_by {
        sessions.check_named_target(&server.url, by).await?;
    }
    let url = format!("{}/objects/batch", server.url);
    // an account is that of the server's own host, never that of the repository's host
    let (request, fault) = request(sessions, Method::POST, &url).await?;
    let objects: Vec<_> = files
        .iter()
        .map(|file| json!({"oid": file.digest.hex(), "size": file.size}))
        .collect();
    let message = json!({
        "operation": match operation {
            LfsOperation::Download => "download",
            LfsOperation::Upload => "upload",
        },
        "transfers": ["basic"],
        "objects": objects,
        "hash_algo": "sha256",
    });
    let mut request = with_message(request, &message);
    // as by git-lfs: servers send 301 for renamed repositories, and from http to https
    request.keeps_method = true;
    let receive = async || {
        let response = send_with_account(sessions, &request, fault.as_ref()).await?;
        let response = expect_success(response).await?;
        let answered = response.url.clone();
        let limit = sessions.transport().limits().document_bytes;
        let bytes = response.bytes(limit).await.map_err(BodyFailure::reading)?;
        Ok::<_, BodyFailure<HttpError>>((bytes, answered))
    };
    let retries = sessions.transport().retry_policy();
    let (bytes, answered) = retries.read_body(receive).await?;
    let answer: BatchAnswer = from_json(&bytes).map_err(|_| {
        let words = "the answer is not that of Git LFS";
        HttpError::new(ErrorKind::Invalid, words).at(&answered)
    })?;
    Ok(answer.sent_by(&answered))
}

/// Reads `bytes` as an answer.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let _ = serde_json::from_slice::<BatchAnswer>(bytes);
}

impl BatchObject {
    /// All requests for the file.
    fn requests(&mut self) -> impl Iterator<Item = &mut LfsAction> {
        let actions = [Some(&mut self.actions), self.links.as_mut()];
        let actions = actions.into_iter().flatten();
        actions
            .flat_map(|one| [&mut one.download, &mut one.upload, &mut one.verify])
            .flatten()
    }
}

impl BatchAnswer {
    /// Returns the answer of the server at `answered`. If that is https, requests to the same
    /// server are https, too.
    fn sent_by(mut self, answered: &Url) -> BatchAnswer {
        self.server = host_port(answered);
        for action in self.objects.iter_mut().flat_map(BatchObject::requests) {
            if let Ok(named) = Url::parse(&action.href) {
                action.href = keeping_https(answered, named).into();
            }
        }
        self
    }

    /// Returns the requests for the file `digest`, which `server` was asked for.
    pub(super) fn actions(
        &self,
        server: &LfsServer,
        digest: &Digest,
    ) -> Result<&BatchActions, HttpError> {
        let found = self
            .objects
            .iter()
            .find(|one| one.oid.eq_ignore_ascii_case(&digest.hex()));
        let fails = |kind, why: &str| {
            let words = format!(
                "the large file {digest} at {}: {why}",
                redact_urls(&server.url)
            );
            Err(with_origin(HttpError::new(kind, words), server))
        };
        match found {
            None => fails(ErrorKind::Invalid, "it is not in the answer"),
            Some(BatchObject {
                error: Some(BatchError { code, message }),
                ..
            }) => {
                let kind = match code {
                    Some(404 | 410) => ErrorKind::NotFound,
                    Some(code) => ErrorKind::Status(*code),
                    None => ErrorKind::Invalid,
                };
                let message: String = message.chars().take(200).collect();
                fails(kind, &message.escape_debug().to_string())
            }
            Some(BatchObject {
                actions,
                links: Some(links),
                ..
            }) if actions.download.is_none() && actions.upload.is_none() => Ok(links),
            Some(BatchObject { actions, .. }) => Ok(actions),
        }
    }
}

impl LfsAction {
    /// Returns the request to send. `server` is the `host:port` of the server that asks for it.
    pub(super) async fn request(
        &self,
        sessions: &RegistrySessions,
        method: Method,
        server: &str,
    ) -> Result<(HttpRequest, Option<Failure>), HttpError> {
        let headers: Vec<(HeaderName, &str)> = self
            .header
            .iter()
            .filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value.as_str())))
            .filter(|(name, _)| !OWN_HEADERS.contains(name))
            .collect();
        let (target, origin) = sessions.file_url(&self.href)?;
        let has_account = headers.iter().any(|(name, _)| *name == AUTHORIZATION);
        // a server must not make landfall use an account at another host
        let (mut request, fault) = if !has_account && host_port(&target) == server {
            request(sessions, method, &self.href).await?
        } else {
            let request = HttpRequest {
                origin,
                // after a redirect, another host must not get the account of this one
                secret: has_account,
                ..HttpRequest::new(method, target, RequestPurpose::File)
            };
            (request, None)
        };
        // the URL comes from an answer, not from the user
        request.named_by = Some(server.to_owned());
        request.keeps_method = true;
        for (name, value) in headers {
            request = request.header(name, value);
        }
        Ok((request, fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::StatusCode;

    #[test]
    fn an_expired_url_is_recognized_by_the_statuses_of_object_stores() {
        for (status, expected) in [
            (400, true),
            (403, true),
            (410, true),
            (404, false),
            (500, false),
        ] {
            let error = HttpError::new(ErrorKind::Status(status), "refused");
            let error = error.with_status(StatusCode::from_u16(status).unwrap());
            assert_eq!(may_have_expired(&error), expected, "{status}");
        }
    }

    #[test]
    fn answers_have_as_many_objects_as_a_request_and_keep_texts_only() {
        let read = |text: &str| serde_json::from_str::<BatchAnswer>(text);
        let many = format!("{{\"objects\": [{}{{}}]}}", "{},".repeat(LFS_BATCH));
        let error = read(&many).unwrap_err().to_string();
        assert!(error.contains("more than 100 objects"), "{error}");
        assert!(read(&many.replacen("{},", "", 1)).is_ok());
        let odd = r#"{"objects": [{"oid": "a", "error": {"code": [1], "message": null},
            "actions": {"download": {"href": "h", "header": {"A": [1], "B": "b", "C": 1}}}}]}"#;
        let BatchObject { actions, error, .. } = read(odd).unwrap().objects.remove(0);
        assert_eq!(error.unwrap().code, None);
        let header = actions.download.unwrap().header;
        assert_eq!(header, [("B".to_owned(), "b".to_owned())].into());
        for null in [r#"{"objects": null}"#, "{}"] {
            assert!(read(null).unwrap().objects.is_empty());
        }
    }

    #[test]
    fn requests_to_the_server_stay_secure() {
        let text = r#"{"objects": [{"oid": "a",
            "actions": {"upload": {"href": "http://git.test:8443/u?x=%2F"},
                "verify": {"href": "http://git.test/v"}},
            "_links": {"download": {"href": "http://x.test/d"}}}]}"#;
        let answer: BatchAnswer = serde_json::from_str(text).unwrap();
        let answered = "https://git.test:8443/a/objects/batch".parse().unwrap();
        let mut answer = answer.sent_by(&answered);
        let requests = answer.objects[0].requests();
        let mut targets: Vec<&str> = requests.map(|action| &*action.href).collect();
        targets.sort_unstable();
        assert_eq!(
            targets,
            [
                "http://git.test/v",
                "http://x.test/d",
                "https://git.test:8443/u?x=%2F"
            ]
        );
    }

    #[test]
    fn actions_may_have_their_first_name() {
        let hex = "a".repeat(64);
        let digest: Digest = format!("sha256:{hex}").parse().unwrap();
        let server = LfsServer::of_repository("https://git.test/a");
        let old = r#""_links": {"self": 1, "upload": {"href": "old"}}"#;
        let new = r#""actions": {"upload": {"href": "new"}}"#;
        for (actions, expected) in [
            (old.to_owned(), Some("old")),
            (format!(r#"{old}, "actions": {{}}"#), Some("old")),
            (format!("{old}, {new}"), Some("new")),
            (r#""_links": []"#.to_owned(), None),
        ] {
            let text = format!(r#"{{"objects": [{{"oid": "{hex}", {actions}}}]}}"#);
            let answer: BatchAnswer = serde_json::from_str(&text).unwrap();
            let upload = answer.actions(&server, &digest).unwrap().upload.as_ref();
            assert_eq!(upload.map(|action| &*action.href), expected, "{text}");
        }
    }
}
