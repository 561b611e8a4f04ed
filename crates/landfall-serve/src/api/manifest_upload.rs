//! Uploads of manifests (distribution-spec "Pushing manifests").

use super::blob_upload::{ensure_pushed, receive};
use crate::response::{
    Body, CONTENT_DIGEST, RequestError, ServerResponse, blocking, boxed_body, empty_response,
    set_header,
};
use crate::route::{ManifestReference, header_text, query_values};
use crate::state::ServerState;
use crate::upload_sessions::{shared_upload, unknown_upload};
use crate::writable::{IncomingBlob, WritableStore};
use http::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderName, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::Limited;
use landfall_model::{
    Algorithm, Descriptor, Digest, ENTRY_ANNOTATIONS, JsonText, Manifest, is_tag, media_type,
    read_referrer,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");
const TAG: HeaderName = HeaderName::from_static("oci-tag");

/// The properties of an uploaded manifest that its request declares.
struct ManifestUpload {
    repository: String,
    /// The digest in the path, if the manifest is pushed by digest.
    digest: Option<Digest>,
    tags: Vec<String>,
    content_type: Option<String>,
}

/// Handles `PUT /v2/NAME/manifests/REFERENCE`.
pub(crate) async fn put_manifest(
    state: Arc<ServerState>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: String,
    reference: ManifestReference,
    body: Body,
) -> Result<ServerResponse, RequestError> {
    let (digest, tags) = match reference {
        ManifestReference::Tag(tag) | ManifestReference::Invalid(tag) => (None, vec![tag]),
        // several tags in one request: distribution-spec 1.2 "Pushing a manifest with tags"
        ManifestReference::Digest(digest) => {
            let tags = query_values(parts.uri.query(), "tag").collect();
            (Some(digest), tags)
        }
    };
    if let Some(invalid) = tags.iter().find(|tag| !is_tag(tag)) {
        let message = format!("'{invalid}' is not a tag");
        return Err(RequestError::bad_request("TAG_INVALID", message));
    }
    // a manifest is pushed as a whole (RFC 9110, 14.5): in the distribution-spec, only blobs have
    // chunks
    if parts.headers.contains_key(CONTENT_RANGE) {
        let message = "a manifest cannot be pushed in parts: Content-Range is not supported here";
        return Err(RequestError::bad_request("MANIFEST_INVALID", message));
    }
    refuse_bundle_tags(&state, &name, &tags)?;
    let content_type = header_text(&parts.headers, CONTENT_TYPE);
    let upload = Arc::new(ManifestUpload {
        repository: name,
        digest,
        tags,
        content_type: content_type.map(str::to_owned),
    });
    let incoming = receive_manifest(&state, &store, &upload, &parts.headers, body).await?;
    // manifests are parsed in memory, so only a few are parsed at a time
    let slot = state.manifest_slots.clone().acquire_owned().await;
    let kept = upload.clone();
    let pushed = blocking(move || {
        let _slot = slot;
        add_manifest(&state, &store, &kept, incoming)
    });
    let (digest, subject) = pushed.await??;
    Ok(created(&upload, &digest, subject.as_ref()))
}

/// Refuses tags that a bundle contains: tags of a bundle must not be overwritten.
fn refuse_bundle_tags(
    state: &ServerState,
    name: &str,
    tags: &[String],
) -> Result<(), RequestError> {
    let repositories = state.bundles.repositories(name, None);
    let in_bundle = tags.iter().find(|tag| {
        repositories
            .iter()
            .any(|repository| repository.has_tag(tag))
    });
    match in_bundle {
        Some(tag) => Err(RequestError::denied(format!(
            "{name}:{tag} is part of a bundle and cannot be overwritten; push to another name"
        ))),
        None => Ok(()),
    }
}

fn created(upload: &ManifestUpload, digest: &Digest, subject: Option<&Digest>) -> ServerResponse {
    let location = format!("/v2/{}/manifests/{digest}", upload.repository);
    let mut response = empty_response(StatusCode::CREATED);
    set_header(&mut response, LOCATION, &location);
    set_header(&mut response, CONTENT_DIGEST, &digest.to_string());
    if let Some(subject) = subject {
        // tells the client that it need not maintain the fallback tag of the referrers
        set_header(&mut response, SUBJECT, &subject.to_string());
    }
    if upload.digest.is_some() {
        for tag in &upload.tags {
            if let Ok(value) = HeaderValue::from_str(tag) {
                response.headers_mut().append(TAG, value);
            }
        }
    }
    response
}

/// Receives the body on disk, not in memory: a client may stall one byte before the end.
async fn receive_manifest(
    state: &Arc<ServerState>,
    store: &Arc<WritableStore>,
    upload: &ManifestUpload,
    headers: &HeaderMap,
    body: Body,
) -> Result<IncomingBlob, RequestError> {
    let max = state.limits.manifest_bytes;
    let algorithm = match &upload.digest {
        Some(digest) => digest.algorithm(),
        None => Algorithm::Sha256,
    };
    let incoming = store.blobs.begin(algorithm).map_err(RequestError::disk)?;
    let slot = shared_upload(incoming).lock_owned().await;
    // limited while it arrives, because Content-Length may be missing or wrong
    let body = boxed_body(Limited::new(body, max));
    match receive(state, store, slot, &upload.repository, headers, body).await {
        Ok(mut slot) => slot.take().ok_or_else(unknown_upload),
        Err(error) if error.status == StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!("the manifest has more than {max} bytes");
            Err(RequestError::new(error.status, "MANIFEST_INVALID", message))
        }
        Err(error) if error.status == StatusCode::BAD_REQUEST => {
            let message = format!("the manifest did not arrive completely: {}", error.message);
            Err(RequestError::bad_request("MANIFEST_INVALID", message))
        }
        Err(error) => Err(error),
    }
}

/// Checks a received manifest and adds it to its repository. Returns its digest and its subject.
fn add_manifest(
    state: &ServerState,
    store: &WritableStore,
    upload: &ManifestUpload,
    mut incoming: IncomingBlob,
) -> Result<(Digest, Option<Digest>), RequestError> {
    let bytes = incoming.bytes().map_err(RequestError::disk)?;
    let digest = match &upload.digest {
        Some(expected) => {
            let found = Digest::compute(expected.algorithm(), &bytes);
            if found != *expected {
                return Err(RequestError::bad_request(
                    "DIGEST_INVALID",
                    format!("the manifest has the digest {found}, not {expected}"),
                ));
            }
            found
        }
        None => Digest::compute(Algorithm::Sha256, &bytes),
    };
    let (manifest, media_type) = parse_manifest(&bytes, upload.content_type.as_deref())?;
    let descriptor = Descriptor::new(digest, bytes.len() as u64, media_type);
    let referrer = read_referrer(&bytes, &descriptor);

    if let Some(referrer) = &referrer
        && referrer.is_abridged
    {
        let message = format!(
            "a manifest with a subject must not have more than {ENTRY_ANNOTATIONS} bytes of \
             annotations, since each list of referrers repeats them"
        );
        return Err(RequestError::bad_request("MANIFEST_INVALID", message));
    }
    let foreign = foreign_layers(&bytes);
    // freed before the blobs are checked: the check may copy large blobs from a bundle
    drop(bytes);
    // no sweep may remove the blobs between this check and the moment when the manifest names them
    let _blobs = store.hold_blobs();
    require_blobs(state, store, &manifest, &foreign)?;
    store.put_manifest(
        &upload.repository,
        &upload.tags,
        &descriptor,
        referrer.as_ref(),
        incoming,
    )?;
    Ok((descriptor.digest, referrer.map(|referrer| referrer.subject)))
}

/// Parses the manifest and determines the media type under which it is served.
fn parse_manifest(
    bytes: &[u8],
    content_type: Option<&str>,
) -> Result<(Manifest, String), RequestError> {
    let (manifest, media_type) = Manifest::parse(bytes, content_type)
        .map_err(|error| RequestError::bad_request("MANIFEST_INVALID", error.to_string()))?;
    if let Some(content_type) = content_type {
        // clients may send a general type such as application/json, or parameters such as charset
        let (bare, _) = content_type.split_once(';').unwrap_or((content_type, ""));
        let bare = bare.trim();
        if media_type::is_manifest(bare) && bare != media_type {
            let message =
                format!("Content-Type is {bare}, but the manifest has the media type {media_type}");
            return Err(RequestError::bad_request("MANIFEST_INVALID", message));
        }
    }
    Ok((manifest, media_type))
}

/// Requires all blobs of an image, except foreign layers. The children of an index may be missing:
/// a site holds only the platforms that it needs.
fn require_blobs(
    state: &ServerState,
    store: &WritableStore,
    manifest: &Manifest,
    foreign: &BTreeSet<Digest>,
) -> Result<(), RequestError> {
    let Manifest::Image { config, layers, .. } = manifest else {
        return Ok(());
    };
    for blob in config.iter().chain(layers) {
        let digest = &blob.digest;
        match ensure_pushed(state, store, digest)? {
            Some(size) if size == blob.size => {}
            // the digest is correct, so the manifest itself is invalid
            Some(size) => {
                let message = format!(
                    "the manifest lists {digest} with {} bytes, but it has {size}",
                    blob.size
                );
                return Err(RequestError::bad_request("MANIFEST_INVALID", message));
            }
            None if foreign.contains(digest) => {}
            None => {
                let message = format!("the blob {digest} is missing; push it before the manifest");
                return Err(RequestError::bad_request("MANIFEST_BLOB_UNKNOWN", message));
            }
        }
    }
    Ok(())
}

/// The layers that may be missing: those with `urls`, and those with a media type for
/// non-distributable content.
fn foreign_layers(bytes: &[u8]) -> BTreeSet<Digest> {
    let text = String::from_utf8_lossy(bytes);
    let [layers] = JsonText::new(&text).members_if_object(["layers"]);
    let layers = layers.and_then(JsonText::elements).unwrap_or_default();
    let foreign = layers.into_iter().filter_map(|layer| {
        let [digest, kind, urls] = layer.members_if_object(["digest", "mediaType", "urls"]);
        let has_urls = urls
            .and_then(JsonText::elements)
            .is_some_and(|urls| !urls.is_empty());
        let kind = kind.and_then(JsonText::string).unwrap_or_default();
        let is_foreign = has_urls || media_type::is_foreign(&kind);
        digest.filter(|_| is_foreign)?.string()?.parse().ok()
    });
    foreign.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_layers_are_recognized_by_urls_or_type() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        let a = digest("a");
        let b = digest("b");
        let c = digest("c");
        let manifest = format!(
            r#"{{"layers":[{{"digest":"{a}","urls":["https://h/a"]}},
              {{"digest":"{b}","mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}},
              {{"digest":"{c}","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","urls":[]}}]}}"#
        );
        assert_eq!(foreign_layers(manifest.as_bytes()), BTreeSet::from([a, b]));
    }

    #[test]
    fn a_manifest_must_match_its_declared_media_type() {
        let index = br#"{"schemaVersion":2,"manifests":[]}"#;
        assert_eq!(
            parse_manifest(index, None).unwrap().1,
            media_type::OCI_INDEX
        );
        assert_eq!(
            parse_manifest(index, Some("application/json; charset=utf-8"))
                .unwrap()
                .1,
            media_type::OCI_INDEX
        );
        let typed =
            br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
        assert_eq!(
            parse_manifest(typed, Some(media_type::DOCKER_LIST))
                .unwrap_err()
                .code,
            "MANIFEST_INVALID"
        );
        assert_eq!(
            parse_manifest(b"{}", None).unwrap_err().code,
            "MANIFEST_INVALID"
        );
    }
}
