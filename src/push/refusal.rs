//! What a registry's refusal of a manifest is about.

use crate::content::TransferError;
use crate::registry;
use crate::report::Side;

/// A refusal that an index with missing children gets.
pub(super) fn refuses_children(error: &TransferError) -> bool {
    error.side == Side::Destination && registry::refuses_children(&error.why)
}

/// Whether the registry refuses a manifest for want of blobs that it names.
pub(super) fn lacks_blobs(error: &TransferError) -> bool {
    error.side == Side::Destination && registry::lacks_blobs(&error.why)
}

/// Whether a manifest names URLs of foreign layers.
pub(super) fn foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_slice(manifest).ok();
    let layers = document.as_ref().and_then(|document| document.get("layers")?.as_array());
    layers.into_iter().flatten().any(|layer| layer.get("urls").is_some())
}
