//! The batch API of Git LFS: the requests that download and upload the large files of a git
//! repository (git-lfs, docs/api/batch.md).

use super::file::{expect_success, request, send_with_account};
use crate::registry::{CredentialError, RegistrySessions};
use bytes::Bytes;
use landfall_http::{ErrorKind, HttpError, HttpRequest, RequestBody, RequestPurpose, host_port};
use landfall_model::{Descriptor, Digest};
use reqwest::Method;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, RANGE,
    TRANSFER_ENCODING,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    objects: Vec<BatchObject>,
}

#[derive(Debug, Deserialize)]
struct BatchObject {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    oid: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    actions: BatchActions,
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
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    header: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct BatchError {
    #[serde(default)]
    code: Value,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    message: String,
}

/// The URL of the batch API of a repository (git-lfs, docs/api/server-discovery.md).
fn batch_url(url: &str) -> String {
    let ending = if url.ends_with(".git") { "" } else { ".git" };
    format!("{url}{ending}/info/lfs/objects/batch")
}

/// Asks the server of the repository at `url` how these files are transferred.
pub(super) async fn batch(
    sessions: &RegistrySessions,
    url: &str,
    files: &[Descriptor],
    operation: LfsOperation,
) -> Result<BatchAnswer, HttpError> {
    let (request, fault) = request(sessions, Method::POST, &batch_url(url)).await?;
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
    let mut request = request
        .header(ACCEPT, LFS_MEDIA_TYPE)
        .header(CONTENT_TYPE, LFS_MEDIA_TYPE);
    request.body = RequestBody::Bytes(Bytes::from(message.to_string()));
    let response = send_with_account(sessions, &request, fault).await?;
    let response = expect_success(response).await?;
    let answered = response.url.clone();
    let limit = sessions.transport().limits().document_bytes;
    let bytes = response.bytes(limit).await?;
    let answer: BatchAnswer = serde_json::from_slice(&bytes).map_err(|_| {
        let words = "the answer is not that of Git LFS";
        HttpError::new(ErrorKind::Invalid, words).at(&answered)
    })?;
    Ok(BatchAnswer {
        server: host_port(&answered),
        ..answer
    })
}

impl BatchAnswer {
    /// Returns the requests for the file `digest` of the repository at `url`.
    pub(super) fn actions(&self, url: &str, digest: &Digest) -> Result<&BatchActions, HttpError> {
        let found = self
            .objects
            .iter()
            .find(|one| one.oid.eq_ignore_ascii_case(&digest.hex()));
        let fails = |kind, why: &str| {
            let words = format!("the large file {digest} at {url}: {why}");
            Err(HttpError::new(kind, words))
        };
        match found {
            None => fails(ErrorKind::Invalid, "it is not in the answer"),
            Some(BatchObject {
                error: Some(BatchError { code, message }),
                ..
            }) => {
                let code = code.as_u64().and_then(|code| u16::try_from(code).ok());
                let kind = match code {
                    Some(404 | 410) => ErrorKind::NotFound,
                    Some(code) => ErrorKind::Status(code),
                    None => ErrorKind::Invalid,
                };
                let message: String = message.chars().take(200).collect();
                fails(kind, &message.escape_debug().to_string())
            }
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
    ) -> Result<(HttpRequest, Option<Arc<CredentialError>>), HttpError> {
        let headers: Vec<(HeaderName, &str)> = self
            .header
            .iter()
            .filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value.as_str()?)))
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
        for (name, value) in headers {
            request = request.header(name, value);
        }
        Ok((request, fault))
    }
}
