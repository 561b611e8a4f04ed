//! Finds out why a registry refused a manifest.

use landfall_content::TransferError;
use landfall_content::registry;
use landfall_model::report::TransferSide;

/// Whether an index was refused because the registry lacks some of its children.
pub(super) fn is_missing_children_refusal(error: &TransferError) -> bool {
    error.side == TransferSide::Destination && registry::is_missing_children_error(&error.why)
}

/// Whether the registry may have refused a manifest only because another client delivers the same
/// manifest at the same time.
pub(super) fn may_be_push_race(error: &TransferError) -> bool {
    error.side == TransferSide::Destination && registry::may_be_push_race(&error.why)
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
