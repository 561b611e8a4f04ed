//! The responses of the fault registry to each kind of request, after authentication.

use super::content::OCI_INDEX;
use super::server::Faults;
use super::switch::{FaultKind, Location};
use super::wire::{Answer, Request};
use crate::support::images::sha256;
use serde_json::{Value, json};
use std::sync::Arc;

impl Faults {
    pub(super) fn manifest(
        &self,
        repository: &str,
        reference: &str,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let mut state = self.state();
        let key = |name: &str| (repository.to_owned(), name.to_owned());
        let mut digest = state
            .content
            .tags
            .get(&key(reference))
            .cloned()
            .unwrap_or(reference.to_owned());
        let other = state.content.tags.get(&key("other")).cloned();
        if let (Some(FaultKind::Moving), Some(other), false) =
            (fault, other, reference.starts_with("sha256:"))
        {
            // swaps the images of this tag and of the tag `other`, so that successive responses
            // alternate between them
            state.content.tags.insert(key("other"), digest.clone());
            state.content.tags.insert(key(reference), other.clone());
            digest = other;
        }
        let quota = state.settings.quota;
        let Some((kind, bytes)) = state.content.manifests.get(&key(&digest)) else {
            return Answer::error(404, "MANIFEST_UNKNOWN");
        };
        let answer = Answer::new(200, bytes.to_vec())
            .header("Content-Type", kind)
            .header("Docker-Content-Digest", digest);
        match quota {
            Some(left) => answer
                .header("ratelimit-limit", "100;w=21600")
                .header("ratelimit-remaining", format!("{left};w=21600"))
                .header("docker-ratelimit-source", "192.0.2.7"),
            None => answer,
        }
    }

    pub(super) fn tags(
        &self,
        request: &Request,
        repository: &str,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let state = self.state();
        let all = state
            .content
            .tags
            .keys()
            .filter(|(own, _)| own == repository);
        let all: Vec<&String> = all.map(|(_, tag)| tag).collect();
        let (page, link) = page(request, &all, fault);
        let tags = if fault == Some(&FaultKind::NullTags) {
            json!(null)
        } else {
            json!(page)
        };
        let answer = Answer::new(200, json!({"name": repository, "tags": tags}).to_string());
        link.into_iter()
            .fold(answer, |answer, link| answer.header("Link", link))
    }

    pub(super) fn referrers(
        &self,
        request: &Request,
        repository: &str,
        subject: &str,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let state = self.state();
        if state.settings.no_referrers {
            return Answer::error(404, "UNSUPPORTED");
        }
        let own = state
            .content
            .manifests
            .iter()
            .filter(|((own, _), _)| own == repository);
        let about = |bytes: &[u8]| {
            let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
            document["subject"]["digest"] == subject
        };
        let own = own.filter(|(_, (_, bytes))| about(bytes));
        let all: Vec<Value> = own
            .map(|((_, digest), (kind, bytes))| json!({"mediaType": kind, "digest": digest, "size": bytes.len()}))
            .collect();
        let (page, link) = page(request, &all, fault);
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": page});
        let answer = Answer::new(200, index.to_string()).header("Content-Type", OCI_INDEX);
        link.into_iter()
            .fold(answer, |answer, link| answer.header("Link", link))
    }

    pub(super) fn second(
        &self,
        request: &Request,
        body: Vec<u8>,
        last: &str,
        fault: Option<&FaultKind>,
    ) -> Answer {
        if request.header("authorization").is_some() {
            return Answer::new(400, "only one way of authentication is allowed");
        }
        if request.method == "PUT" {
            let repository = request.query("repository").unwrap_or_default().to_owned();
            return self.finish(request, &repository, last, body, fault);
        }
        if request.query("signature") != Some("good") {
            return Answer::new(
                403,
                "<Error><Code>AccessDenied</Code><Message>Request has expired</Message>",
            );
        }
        match self.state().content.any_blob(last) {
            Some(bytes) => ranged(request, &bytes, fault),
            None => Answer::new(404, ""),
        }
    }

    pub(super) fn begin(
        &self,
        request: &Request,
        repository: &str,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let mut state = self.state();
        if let Some(digest) = request.query("mount") {
            let from = request.query("from").unwrap_or_default();
            let there = state
                .content
                .blobs
                .get(&(from.to_owned(), digest.to_owned()))
                .cloned();
            match (fault, there) {
                (Some(FaultKind::Mount(401)), _) => {
                    drop(state);
                    return self.challenge(request);
                }
                (Some(FaultKind::Mount(202)), _) | (_, None) => {}
                (Some(FaultKind::Mount(status)), _) => {
                    return Answer::error(*status, "NAME_UNKNOWN");
                }
                (_, Some(bytes)) => {
                    state
                        .content
                        .blobs
                        .insert((repository.to_owned(), digest.to_owned()), bytes);
                    let location = format!("/v2/{repository}/blobs/{digest}");
                    return Answer::new(201, "").header("Location", location);
                }
            }
        }
        state.uploads.push(Some(Vec::new()));
        let path = format!(
            "/v2/{repository}/blobs/uploads/{}?_state=a%2Fb",
            state.uploads.len() - 1
        );
        drop(state);
        let host = self.address.split(':').next().unwrap();
        let form = match fault {
            Some(FaultKind::Location(form)) => Some(*form),
            _ => self.product_location(),
        };
        let location = match form {
            Some(Location::Relative) => path,
            Some(Location::NoPort) => format!("http://{host}{path}"),
            Some(Location::NoScheme) => format!("//{}{path}", self.address),
            Some(Location::OtherHost) => {
                format!("http://{}{path}&repository={repository}", self.second)
            }
            Some(Location::Silent) => format!("http://127.0.0.1:1{path}"),
            None => format!("http://{}{path}", self.address),
        };
        Answer::new(202, "")
            .header("Location", location)
            .header("Range", "0-0")
    }

    pub(super) fn patch(
        &self,
        request: &Request,
        last: &str,
        body: Vec<u8>,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let mut state = self.state();
        let upload = last
            .parse::<usize>()
            .ok()
            .and_then(|at| state.uploads.get_mut(at)?.as_mut());
        let Some(upload) = upload else {
            return Answer::error(404, "BLOB_UPLOAD_UNKNOWN");
        };
        upload.extend(body);
        let end = if fault == Some(&FaultKind::StaleRange) {
            0
        } else {
            upload.len().saturating_sub(1)
        };
        let status = if let Some(FaultKind::PatchStatus(status)) = fault {
            *status
        } else {
            202
        };
        let location = format!("{}?_state=next", request.path);
        Answer::new(status, "")
            .header("Location", location)
            .header("Range", format!("0-{end}"))
    }

    pub(super) fn finish(
        &self,
        request: &Request,
        repository: &str,
        last: &str,
        body: Vec<u8>,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let mut state = self.state();
        let upload = last
            .parse::<usize>()
            .ok()
            .and_then(|at| state.uploads.get_mut(at)?.take());
        let Some(mut bytes) = upload else {
            return Answer::error(404, "BLOB_UPLOAD_UNKNOWN");
        };
        bytes.extend(body);
        let digest = request.query("digest").unwrap_or_default().to_owned();
        if sha256(&bytes) != digest {
            return Answer::error(400, "DIGEST_INVALID");
        }
        state
            .content
            .blobs
            .insert((repository.to_owned(), digest.clone()), Arc::new(bytes));
        let answer = Answer::new(201, "");
        match fault {
            Some(FaultKind::NoLocation) => answer,
            _ => answer.header("Location", format!("/v2/{repository}/blobs/{digest}")),
        }
    }

    pub(super) fn put_manifest(
        &self,
        request: &Request,
        repository: &str,
        last: &str,
        body: Vec<u8>,
        fault: Option<&FaultKind>,
    ) -> Answer {
        let takes_sparse_indexes = self.accepts_sparse_indexes();
        let mut state = self.state();
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let content = &state.content;
        if !content.lacking_blobs(repository, &document).is_empty()
            || !takes_sparse_indexes && !content.lacking_children(repository, &document).is_empty()
        {
            return Answer::error(400, "MANIFEST_BLOB_UNKNOWN");
        }
        let digest = sha256(&body);
        if last.starts_with("sha256:") && last != digest {
            return Answer::error(400, "DIGEST_INVALID");
        }
        let subject = document["subject"]["digest"].as_str().map(str::to_owned);
        let kind = request
            .header("content-type")
            .unwrap_or_default()
            .to_owned();
        let key = (repository.to_owned(), digest.clone());
        state.content.manifests.insert(key, (kind, Arc::new(body)));
        if !last.starts_with("sha256:") && fault != Some(&FaultKind::Lost) {
            state
                .content
                .tags
                .insert((repository.to_owned(), last.to_owned()), digest.clone());
        }
        let mut answer = Answer::new(201, "").header("Docker-Content-Digest", digest.clone());
        if let (Some(subject), false, false) = (
            subject,
            state.settings.no_referrers,
            fault == Some(&FaultKind::NoSubject),
        ) {
            answer = answer.header("OCI-Subject", subject);
        }
        match fault {
            Some(FaultKind::NoLocation) => answer,
            _ => answer.header("Location", format!("/v2/{repository}/manifests/{digest}")),
        }
    }
}

/// The entries of a list for this request, and the `Link` to the next page.
fn page<T: Clone>(
    request: &Request,
    all: &[T],
    fault: Option<&FaultKind>,
) -> (Vec<T>, Option<String>) {
    let start = request
        .query("from")
        .and_then(|from| from.parse().ok())
        .unwrap_or(0)
        .min(all.len());
    let size = match fault {
        Some(FaultKind::Pages(size)) => *size,
        _ => all.len(),
    };
    let end = (start + size).min(all.len());
    let link = (end < all.len()).then(|| format!("<{}?from={end}>; rel=\"next\"", request.path));
    (all[start..end].to_vec(), link)
}

/// The response with the whole content or its requested range, changed as the fault requires.
pub(super) fn ranged(request: &Request, bytes: &[u8], fault: Option<&FaultKind>) -> Answer {
    let octets = |status, body: &[u8]| {
        Answer::new(status, body).header("Content-Type", "application/octet-stream")
    };
    let size = bytes.len();
    let part = |named: usize, start: usize| {
        let range = format!("bytes {named}-{}/{size}", size.saturating_sub(1));
        octets(206, &bytes[start.min(size)..]).header("Content-Range", range)
    };
    match (request.range().filter(|start| *start > 0), fault) {
        (None, _) | (_, Some(FaultKind::RangeDropped)) => octets(200, bytes),
        (Some(_), Some(FaultKind::RangeRefused(status))) => {
            // like a 416 of docker-registry: the `Content-Length` of the blob, and a short body
            Answer {
                length: Some(size),
                ..octets(*status, b"requested range not satisfiable\n")
            }
        }
        (Some(start), Some(FaultKind::RangeShifted)) => part(start / 2, start / 2),
        (Some(start), Some(FaultKind::RangeLies)) => {
            let mut answer = part(start, start);
            answer.body.reverse();
            answer
        }
        (Some(start), _) if start >= size => Answer {
            length: Some(size),
            ..octets(416, b"no")
        },
        (Some(start), _) => part(start, start),
    }
}
