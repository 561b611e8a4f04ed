//! Large files of git repositories: the batch API of Git LFS (git-lfs, docs/api/batch.md), for
//! downloads.

use super::route::GitRoute;
use crate::request_host::ServerName;
use crate::response::{ServerResponse, response_with_body};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use landfall_item::LockedLargeFile;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};

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

/// Answers a batch request.
pub(super) fn answer_batch(route: &GitRoute, parts: &Parts, message: &[u8]) -> ServerResponse {
    let answer =
        |status, body: Value| response_with_body(status, MEDIA_TYPE, body.to_string().into_bytes());
    let Ok(request) = serde_json::from_slice::<BatchRequest>(message) else {
        let body = json!({"message": "this is not a batch request of Git LFS"});
        return answer(StatusCode::UNPROCESSABLE_ENTITY, body);
    };
    if request.operation != "download" {
        let body = json!({"message": "repositories are read-only here"});
        return answer(StatusCode::FORBIDDEN, body);
    }
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.authority().map(Authority::as_str).or(host);
    // a proxy in front of this server may speak TLS
    let forwarded = parts.headers.get("x-forwarded-proto");
    let is_tls = parts.extensions.get::<ServerName>().is_some()
        || forwarded.is_some_and(|scheme| scheme == "https");
    let scheme = if is_tls { "https" } else { "http" };
    let path = parts.uri.path();
    let folder = path.strip_suffix("batch").unwrap_or(path);
    let base = format!("{scheme}://{}{folder}", host.unwrap_or_default());
    let objects: Vec<Value> = request
        .objects
        .iter()
        .map(|RequestedFile { oid, size }| {
            let digest: Option<Digest> = format!("sha256:{oid}").parse().ok();
            match digest.and_then(|digest| large_file(route, &digest)) {
                Some(_) => json!({
                    "oid": oid,
                    "size": size,
                    "authenticated": true,
                    "actions": {"download": {"href": format!("{base}{oid}")}},
                }),
                None => json!({
                    "oid": oid,
                    "size": size,
                    "error": {"code": 404, "message": "the mirror does not have this file"},
                }),
            }
        })
        .collect();
    answer(
        StatusCode::OK,
        json!({"transfer": "basic", "objects": objects}),
    )
}

/// The large file with this digest, if the repository has it.
pub(super) fn large_file<'r>(route: &'r GitRoute, digest: &Digest) -> Option<&'r LockedLargeFile> {
    let mut files = route.repository.large_files.iter().flatten();
    files.find(|file| file.digest == *digest)
}
