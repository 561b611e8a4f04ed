//! Large files of git repositories: the batch API of Git LFS (git-lfs, docs/api/batch.md), for
//! downloads.

use super::message::read_message;
use crate::catalog::ServedGitRepository;
use crate::response::{Body, RequestError, ServerResponse, response_in_pieces, response_with_body};
use crate::route::{host_as_written, is_over_tls};
use http::StatusCode;
use http::request::Parts;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";
/// The maximum size of a request, in bytes: 2,600 files. git-lfs requests 100 at once.
const MAX_REQUEST: usize = 256 << 10;
/// The size from which the next piece of an answer begins, in bytes.
const PIECE: usize = 16 << 10;

/// A request for several files.
#[derive(Debug, Deserialize)]
struct BatchRequest {
    operation: String,
    objects: Vec<RequestedFile>,
}

#[derive(Debug, Deserialize)]
struct RequestedFile {
    oid: Box<str>,
    size: u64,
}

/// Answers a batch request.
pub(super) async fn answer_batch(
    repositories: &[Arc<ServedGitRepository>],
    parts: &Parts,
    body: Body,
) -> Result<ServerResponse, RequestError> {
    let mut message = Vec::new();
    read_message(parts, body, MAX_REQUEST, |bytes| {
        message.extend_from_slice(bytes)
    })
    .await?;
    let refusal = |status, message: &str| {
        let body = json!({"message": message}).to_string();
        Ok(response_with_body(status, MEDIA_TYPE, body))
    };
    let Ok(request) = serde_json::from_slice::<BatchRequest>(&message) else {
        let why = "this is not a batch request of Git LFS";
        return refusal(StatusCode::UNPROCESSABLE_ENTITY, why);
    };
    if request.operation != "download" {
        return refusal(StatusCode::FORBIDDEN, "repositories are read-only here");
    }
    let answer = batch_answer(repositories.to_vec(), base_url(parts), request.objects);
    Ok(response_in_pieces(MEDIA_TYPE, answer))
}

/// The answer for `files` of repositories whose large files are at URLs below `base`, in pieces
/// that are made when they are needed.
fn batch_answer(
    repositories: Vec<Arc<ServedGitRepository>>,
    base: String,
    files: Vec<RequestedFile>,
) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
    let mut files = files.into_iter();
    let mut next = Some("{\"transfer\":\"basic\",\"objects\":[".to_owned());
    let mut separator = "";
    std::iter::from_fn(move || {
        let mut piece = next.take()?;
        while piece.len() < PIECE {
            let Some(file) = files.next() else {
                piece.push_str("]}");
                return Some(piece.into_bytes());
            };
            piece.push_str(std::mem::replace(&mut separator, ","));
            piece.push_str(&file.answer(&repositories, &base).to_string());
        }
        next = Some(String::with_capacity(PIECE));
        Some(piece.into_bytes())
    })
}

impl RequestedFile {
    fn answer(&self, repositories: &[Arc<ServedGitRepository>], base: &str) -> Value {
        let RequestedFile { oid, size } = self;
        let digest: Option<Digest> = format!("sha256:{oid}").parse().ok();
        if digest.is_some_and(|digest| has_file(repositories, &digest)) {
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
    }
}

/// Whether one of the repositories has the large file with this digest.
pub(super) fn has_file(repositories: &[Arc<ServedGitRepository>], digest: &Digest) -> bool {
    let mut repositories = repositories.iter();
    repositories.any(|repository| repository.large_files.contains(digest))
}

/// The URL below which the large files of a batch request are, with a trailing slash.
fn base_url(parts: &Parts) -> String {
    let host = host_as_written(&parts.uri, &parts.headers);
    let scheme = if is_over_tls(parts) { "https" } else { "http" };
    let path = parts.uri.path();
    let folder = path.strip_suffix("batch").unwrap_or(path);
    format!("{scheme}://{}{folder}", host.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::LockedGitRepository;
    use std::collections::HashSet;

    #[test]
    fn a_batch_is_answered_in_small_pieces() {
        let digests: HashSet<Digest> = (0..2000_u32)
            .map(|number| Digest::sha256(&number.to_be_bytes()))
            .collect();
        let oids = digests.iter().map(|digest| digest.hex().into());
        let files: Vec<RequestedFile> = oids
            .chain(["00".repeat(32).into(), "\"".into()])
            .map(|oid| RequestedFile { oid, size: 1 })
            .collect();
        let repository = ServedGitRepository {
            locked: LockedGitRepository::without_refs("https://h/a"),
            large_files: digests,
        };
        let pieces: Vec<Vec<u8>> =
            batch_answer(vec![repository.into()], "http://h/".into(), files).collect();
        assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE));
        let body = String::from_utf8(pieces.concat()).unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["objects"].as_array().unwrap().len(), 2002);
        assert_eq!(body.matches("\"href\":\"http://h/").count(), 2000);
        assert_eq!(body.matches("\"code\":404").count(), 2);
    }
}
