//! Finds out why a registry refused a manifest, or why content cannot be read.

use landfall_content::TransferError;
use landfall_content::registry::{self, SparseRefusal, is_quota_error};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Digest, Manifest, media_type};
use std::collections::BTreeMap;

/// What the refusal of an index says about its children in `absent`.
pub(super) fn sparse_refusal(error: &TransferError, absent: &[Digest]) -> SparseRefusal {
    match error.side {
        TransferSide::Destination => SparseRefusal::of(&error.why, absent),
        _ => SparseRefusal::Unrelated,
    }
}

/// Whether the registry may have refused a manifest only because another client delivers the same
/// manifest at the same time.
pub(super) fn may_be_push_race(error: &TransferError) -> bool {
    error.side == TransferSide::Destination && registry::may_be_push_race(&error.why)
}

/// Whether the content of a source is damaged. A source that is read over the network may also
/// fail to respond.
pub(super) fn is_damage(error: &TransferError) -> bool {
    let is_unread = matches!(
        error.why.kind,
        ErrorKind::Network | ErrorKind::GivenUp | ErrorKind::RetryAfter(_) | ErrorKind::Denied
    );
    error.side == TransferSide::Source && error.why.status.is_none() && !is_unread
}

/// Fails if `manifest` names one of the blobs that could not be delivered.
pub(super) fn check_blobs(
    manifest: &[u8],
    failed_blobs: &BTreeMap<Digest, TransferError>,
) -> Result<(), TransferError> {
    let text = String::from_utf8_lossy(manifest);
    let failed = failed_blobs
        .iter()
        .find(|(digest, _)| text.contains(&digest.hex()));
    failed.map_or(Ok(()), |(_, error)| Err(error.clone()))
}

/// The advice for a manifest that the registry refuses, perhaps for its type; `None` for images and
/// for refusals with another cause.
pub(super) fn type_advice(error: &HttpError, manifest: &[u8]) -> Option<String> {
    // 404 and 405 are the answers of registries that do not route such a request at all
    let may_be_type = matches!(error.status, Some(400 | 404 | 405 | 406 | 415 | 422));
    if !may_be_type || is_quota_error(error.kind, &error.codes) {
        return None;
    }
    let Ok((Manifest::Image { artifact_type, .. }, _)) = Manifest::parse(manifest, None) else {
        return None;
    };
    let document: Option<serde_json::Value> = serde_json::from_slice(manifest).ok();
    if document.is_some_and(|document| document.get("subject").is_some()) {
        return Some(format!(
            "; the registry may not accept {artifact_type} or a manifest with `subject`: \
             --referrers skip leaves referrers out"
        ));
    }
    (!media_type::is_image_config(&artifact_type)).then(|| {
        format!(
            "; the registry may not accept artifacts of the type {artifact_type}: allow the type \
             there, leave the kind out with --skip-kinds, or use `landfall serve`, which has all \
             kinds"
        )
    })
}

/// Whether a manifest contains URLs of foreign layers.
pub(super) fn has_foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_slice(manifest).ok();
    let layers = document
        .as_ref()
        .and_then(|document| document.get("layers")?.as_array());
    layers
        .into_iter()
        .flatten()
        .any(|layer| layer.get("urls").is_some())
}
