//! Finds out why a registry refused a manifest, or why content cannot be read.

use landfall_content::TransferError;
use landfall_content::registry::{self, SparseRefusal, is_quota_error};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Digest, Manifest, from_json, media_type};
use std::collections::{BTreeMap, BTreeSet};

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

/// The type of a manifest that the registry refuses, perhaps for its type; `None` for images and
/// for refusals with another cause.
pub(super) fn refused_type(error: &HttpError, manifest: &[u8]) -> Option<RefusedType> {
    // 404 and 405 are the answers of registries that do not route such a request at all
    let may_be_type = matches!(error.status, Some(400 | 404 | 405 | 406 | 415 | 422));
    if !may_be_type || is_quota_error(error.kind, &error.codes) {
        return None;
    }
    let Ok((Manifest::Image { artifact_type, .. }, _)) = Manifest::parse(manifest, None) else {
        return None;
    };
    let document: Option<serde_json::Value> = from_json(manifest).ok();
    let has_subject = document.is_some_and(|document| document.get("subject").is_some());
    (has_subject || !media_type::is_image_config(&artifact_type)).then_some(RefusedType {
        has_subject,
        artifact_type,
    })
}

/// A type of manifests that a registry refused.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RefusedType {
    /// Whether the manifest has a `subject`, which may be the cause.
    pub(super) has_subject: bool,
    pub(super) artifact_type: String,
}

/// The line about the types that the registry `host` refused, and what to do; `None` if it refused
/// none.
pub(super) fn refused_types_note(host: &str, types: &BTreeSet<RefusedType>) -> Option<String> {
    let names = |has_subject| {
        let names = types.iter().filter(|one| one.has_subject == has_subject);
        let names = names.map(|one| one.artifact_type.as_str());
        names.collect::<Vec<&str>>().join(", ")
    };
    let (artifacts, referrers) = (names(false), names(true));
    let mut refused = Vec::new();
    let mut flags = Vec::new();
    if !artifacts.is_empty() {
        refused.push(format!("artifacts of the types {artifacts}"));
        flags.push("--skip-kinds");
    }
    if !referrers.is_empty() {
        refused.push(format!("manifests with `subject` of the types {referrers}"));
        flags.push("--referrers skip");
    }
    (!refused.is_empty()).then(|| {
        format!(
            "note: {host} may not accept {}: allow them there, use `landfall serve`, which has all \
             kinds, or leave them out with {}; another type would change the digest",
            refused.join(" and "),
            flags.join(" and ")
        )
    })
}

/// Whether a manifest contains URLs of foreign layers.
pub(super) fn has_foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = from_json(manifest).ok();
    let layers = document
        .as_ref()
        .and_then(|document| document.get("layers")?.as_array());
    layers
        .into_iter()
        .flatten()
        .any(|layer| layer.get("urls").is_some())
}
