//! Uploads of manifests.

use super::blob_upload::{BROKEN_OFF, have, receive};
use super::response::{ApiError, CONTENT_DIGEST, Response, blocking, empty, set};
use super::route::{Reference, queries};
use super::state::State;
use super::upload_sessions::unknown;
use super::writable::{IncomingBlob, WritableStore};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use http_body_util::Limited;
use landfall_model::{
    Algorithm, Descriptor, Digest, ENTRY_ANNOTATIONS, Manifest, is_tag, media_type, read_referrer,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::sync::Arc;

const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");
const TAG: HeaderName = HeaderName::from_static("oci-tag");

/// Answers `PUT /v2/NAME/manifests/REFERENCE`.
pub(super) async fn put(
    state: Arc<State>,
    store: Arc<WritableStore>,
    parts: &Parts,
    name: String,
    reference: Reference,
    body: Body,
) -> Result<Response, ApiError> {
    let tags: Vec<String> = match &reference {
        Reference::Tag(tag) => vec![tag.clone()],
        // several tags in one request: distribution-spec 1.2 "Pushing a manifest with tags"
        Reference::Digest(_) => queries(parts.uri.query(), "tag").collect(),
        Reference::Neither(tag) => vec![tag.clone()],
    };
    if let Some(bad) = tags.iter().find(|tag| !is_tag(tag)) {
        return Err(ApiError::bad("TAG_INVALID", format!("'{bad}' is no tag")));
    }
    let of_bundle = state.bundles.repositories(&name, None);
    let taken = |tag: &&String| {
        of_bundle
            .iter()
            .any(|held| !matches!(held.tag(tag), Ok(None)))
    };
    if let Some(tag) = tags.iter().find(taken) {
        return Err(ApiError::denied(format!(
            "{name}:{tag} comes from a bundle and cannot be overwritten; push under another name"
        )));
    }
    let incoming = receive_manifest(&state, &store, &name, parts, &reference, body).await?;
    let sent = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .map(str::to_owned);
    let (at, named) = (name.clone(), reference.clone());
    let slot = state.manifest_slots.clone().acquire_owned().await;
    let (descriptor, subject) = blocking(move || -> Result<_, ApiError> {
        let _slot = slot;
        keep(&state, &store, &at, &tags, named, sent.as_deref(), incoming)
            .map(|kept| ((kept.0, tags), kept.1))
    })
    .await??;
    let (descriptor, tags) = descriptor;
    let mut response = empty(StatusCode::CREATED);
    set(
        &mut response,
        LOCATION,
        &format!("/v2/{name}/manifests/{}", descriptor.digest),
    );
    set(
        &mut response,
        CONTENT_DIGEST,
        &descriptor.digest.to_string(),
    );
    if let Some(subject) = subject {
        set(&mut response, SUBJECT, &subject.to_string());
    }
    if matches!(reference, Reference::Digest(_)) {
        for tag in tags {
            if let Ok(value) = HeaderValue::from_str(&tag) {
                response.headers_mut().append(TAG, value);
            }
        }
    }
    Ok(response)
}

/// Receives the body on disk: a client may stop one byte before its end.
async fn receive_manifest(
    state: &Arc<State>,
    store: &Arc<WritableStore>,
    name: &str,
    parts: &Parts,
    reference: &Reference,
    body: Body,
) -> Result<IncomingBlob, ApiError> {
    let most = state.limits.manifest_bytes;
    let algorithm = match reference {
        Reference::Digest(digest) => digest.algorithm(),
        _ => Algorithm::Sha256,
    };
    let mut slot = Some(store.blobs.begin(algorithm).map_err(ApiError::disk)?);
    let body = Body::new(Limited::new(body, most));
    let received = receive(state, store, &mut slot, name, &parts.headers, body).await;
    received.map_err(|error| match error.code {
        BROKEN_OFF => {
            let message = format!(
                "the manifest did not arrive, or has more than {most} bytes: {}",
                error.message
            );
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "MANIFEST_INVALID", message)
        }
        _ => error,
    })?;
    slot.ok_or_else(unknown)
}

/// Checks a manifest that came in and adds it to the repository. Returns its descriptor and its
/// subject.
fn keep(
    state: &State,
    store: &WritableStore,
    name: &str,
    tags: &[String],
    reference: Reference,
    sent: Option<&str>,
    mut incoming: IncomingBlob,
) -> Result<(Descriptor, Option<Digest>), ApiError> {
    let bytes = incoming.bytes().map_err(ApiError::disk)?;
    let digest = match reference {
        Reference::Digest(digest) if !digest.matches(&bytes) => {
            let found = Digest::compute(digest.algorithm(), &bytes);
            return Err(ApiError::bad(
                "DIGEST_INVALID",
                format!("the manifest is {found}, not {digest}"),
            ));
        }
        Reference::Digest(digest) => digest,
        _ => Digest::compute(Algorithm::Sha256, &bytes),
    };
    let (manifest, kind) = check(&bytes, sent)?;
    let descriptor = Descriptor {
        digest,
        size: bytes.len() as u64,
        media_type: kind.into(),
    };
    let referrer = read_referrer(&bytes, &descriptor);
    if referrer
        .as_ref()
        .is_some_and(|referrer| referrer.is_abridged)
    {
        let message = format!(
            "it has a subject, and annotations of more than {ENTRY_ANNOTATIONS} bytes, which each list of \
             referrers would repeat"
        );
        return Err(ApiError::bad("MANIFEST_INVALID", message));
    }
    let foreign = foreign(&bytes);
    drop(bytes);
    let _held = store.hold_blobs();
    want_blobs(state, store, &manifest, &foreign)?;
    store.put_manifest(name, tags, &descriptor, referrer.as_ref(), incoming)?;
    Ok((descriptor, referrer.map(|referrer| referrer.subject)))
}

/// Reads the manifest and the media type under which it is served.
fn check(bytes: &[u8], sent: Option<&str>) -> Result<(Manifest, String), ApiError> {
    let invalid = |message: String| ApiError::bad("MANIFEST_INVALID", message);
    let (manifest, kind) =
        Manifest::parse(bytes, sent).map_err(|error| invalid(error.to_string()))?;
    let bare = sent.map(|sent| sent.split(';').next().unwrap_or(sent).trim());
    match bare.filter(|bare| media_type::is_manifest(bare)) {
        Some(bare) if bare != kind => Err(invalid(format!(
            "it is sent as {bare} but says of itself that it is {kind}"
        ))),
        _ => Ok((manifest, kind)),
    }
}

/// All blobs of an image must be here, except foreign layers. Children of an index may be absent: a
/// site holds only the platforms that it needs.
fn want_blobs(
    state: &State,
    store: &WritableStore,
    manifest: &Manifest,
    foreign: &BTreeSet<Digest>,
) -> Result<(), ApiError> {
    let Manifest::Image { config, layers, .. } = manifest else {
        return Ok(());
    };
    for blob in std::iter::once(config).chain(layers) {
        let digest = &blob.digest;
        match have(state, store, digest)? {
            Some(size) if size == blob.size => {}
            Some(size) => {
                let message = format!(
                    "it says that {digest} has {} bytes, which has {size}",
                    blob.size
                );
                return Err(ApiError::bad("MANIFEST_INVALID", message));
            }
            None if foreign.contains(digest) => {}
            None => {
                let message =
                    format!("{digest}, which it names, is not here; push its blobs first");
                return Err(ApiError::bad("MANIFEST_BLOB_UNKNOWN", message));
            }
        }
    }
    Ok(())
}

/// Layers that may be absent: those with `urls`, and those whose media type says that they are not
/// distributable.
fn foreign(bytes: &[u8]) -> BTreeSet<Digest> {
    #[derive(Deserialize)]
    struct Layers {
        #[serde(default)]
        layers: Vec<Layer>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Layer {
        digest: Digest,
        #[serde(default)]
        media_type: String,
        #[serde(default)]
        urls: Vec<IgnoredAny>,
    }
    let layers = serde_json::from_slice::<Layers>(bytes)
        .map(|found| found.layers)
        .unwrap_or_default();
    let elsewhere =
        |layer: &Layer| !layer.urls.is_empty() || media_type::is_foreign(&layer.media_type);
    layers
        .into_iter()
        .filter(elsewhere)
        .map(|layer| layer.digest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_layers_are_known_by_urls_or_by_type() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        let (a, b, c) = (digest("a"), digest("b"), digest("c"));
        let manifest = format!(
            r#"{{"layers":[{{"digest":"{a}","urls":["https://h/a"]}},
              {{"digest":"{b}","mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}},
              {{"digest":"{c}","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","urls":[]}}]}}"#
        );
        assert_eq!(foreign(manifest.as_bytes()), BTreeSet::from([a, b]));
    }

    #[test]
    fn a_manifest_is_what_it_says_it_is() {
        let index = br#"{"schemaVersion":2,"manifests":[]}"#;
        assert_eq!(check(index, None).unwrap().1, media_type::OCI_INDEX);
        assert_eq!(
            check(index, Some("application/json; charset=utf-8"))
                .unwrap()
                .1,
            media_type::OCI_INDEX
        );
        let said =
            br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;
        assert_eq!(
            check(said, Some(media_type::DOCKER_LIST)).unwrap_err().code,
            "MANIFEST_INVALID"
        );
        assert_eq!(check(b"{}", None).unwrap_err().code, "MANIFEST_INVALID");
    }
}
