//! Large files of git repositories: the batch API of Git LFS (git-lfs, docs/api/batch.md), for
//! downloads.

use crate::request_host::ServerName;
use crate::response::{RequestError, ServerResponse, blocking, response_with_body};
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use landfall_item::{LockedGitRepository, LockedLargeFile};
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";

/// A request for several files.
#[derive(Debug, Deserialize)]
struct BatchRequest {
    operation: String,
    objects: Vec<RequestedFile>,
}

#[derive(Debug, Deserialize)]
struct RequestedFile {
    oid: String,
    size: u64,
}

/// The answer to a batch request.
struct LfsBatchResponse {
    status: StatusCode,
    body: Vec<u8>,
}

/// Answers a batch request.
pub(super) async fn answer_batch(
    repositories: &[Arc<LockedGitRepository>],
    parts: &Parts,
    message: Bytes,
) -> Result<ServerResponse, RequestError> {
    let repositories = repositories.to_vec();
    let base = base_url(parts);
    // a request may list many thousand files
    let answer = blocking(move || LfsBatchResponse::new(&repositories, &base, &message)).await?;
    Ok(response_with_body(answer.status, MEDIA_TYPE, answer.body))
}

/// The URL below which the large files of a batch request are, with a trailing slash.
fn base_url(parts: &Parts) -> String {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.authority().map(Authority::as_str).or(host);
    // a proxy in front of this server may speak TLS
    let forwarded = parts.headers.get("x-forwarded-proto");
    let is_tls = parts.extensions.get::<ServerName>().is_some()
        || forwarded.is_some_and(|scheme| scheme == "https");
    let scheme = if is_tls { "https" } else { "http" };
    let path = parts.uri.path();
    let folder = path.strip_suffix("batch").unwrap_or(path);
    format!("{scheme}://{}{folder}", host.unwrap_or_default())
}

impl LfsBatchResponse {
    /// The answer to `message`, for repositories whose large files are at URLs below `base`.
    fn new(
        repositories: &[Arc<LockedGitRepository>],
        base: &str,
        message: &[u8],
    ) -> LfsBatchResponse {
        let answer = |status, body: Value| LfsBatchResponse {
            status,
            body: body.to_string().into_bytes(),
        };
        let Ok(request) = serde_json::from_slice::<BatchRequest>(message) else {
            let body = json!({"message": "this is not a batch request of Git LFS"});
            return answer(StatusCode::UNPROCESSABLE_ENTITY, body);
        };
        if request.operation != "download" {
            let body = json!({"message": "repositories are read-only here"});
            return answer(StatusCode::FORBIDDEN, body);
        }
        let files = large_files(repositories);
        let known: BTreeSet<&Digest> = files.map(|file| &file.digest).collect();
        let objects: Vec<Value> = request
            .objects
            .iter()
            .map(|RequestedFile { oid, size }| {
                let digest: Option<Digest> = format!("sha256:{oid}").parse().ok();
                if digest.is_some_and(|digest| known.contains(&digest)) {
                    json!({
                        "oid": oid,
                        "size": size,
                        "authenticated": true,
                        "actions": {"download": {"href": format!("{base}{oid}")}},
                    })
                } else {
                    json!({
                        "oid": oid,
                        "size": size,
                        "error": {"code": 404, "message": "the mirror does not have this file"},
                    })
                }
            })
            .collect();
        answer(
            StatusCode::OK,
            json!({"transfer": "basic", "objects": objects}),
        )
    }
}

fn large_files(
    repositories: &[Arc<LockedGitRepository>],
) -> impl Iterator<Item = &LockedLargeFile> {
    let files = repositories.iter().flat_map(|one| &one.large_files);
    files.flatten()
}

/// The large file with this digest, if one of the repositories has it.
pub(super) fn large_file<'r>(
    repositories: &'r [Arc<LockedGitRepository>],
    digest: &Digest,
) -> Option<&'r LockedLargeFile> {
    let mut files = large_files(repositories);
    files.find(|file| file.digest == *digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn a_batch_takes_linear_time() {
        assert_linear(2_000, |count| {
            let file = |n: usize| LockedLargeFile {
                digest: Digest::sha256(&n.to_be_bytes()),
                size: 1,
                server: None,
            };
            let files: Vec<LockedLargeFile> = (0..count).map(file).collect();
            let objects = files.iter().rev().map(|file| file.digest.hex());
            let objects: Vec<Value> = objects
                .map(|oid| json!({"oid": oid, "size": 1}))
                .chain([json!({"oid": "00".repeat(32), "size": 1})])
                .collect();
            let repository = LockedGitRepository {
                large_files: Some(files),
                ..LockedGitRepository::without_refs("https://h/a")
            };
            let message = json!({"operation": "download", "objects": objects}).to_string();
            let answer =
                LfsBatchResponse::new(&[repository.into()], "http://h/", message.as_bytes());
            let body = String::from_utf8(answer.body).unwrap();
            assert_eq!(body.matches("\"href\":\"http://h/").count(), count);
            assert_eq!(body.matches("\"code\":404").count(), 1);
        });
    }
}
