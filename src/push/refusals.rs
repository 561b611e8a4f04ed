//! What a registry's refusal of a manifest is about.

use crate::content::TransferError;
use crate::report::Side;

/// A refusal that an index with missing children gets (distribution-spec, "Error Codes"). Other refusals,
/// of the tag or of the size, are not about children.
pub(super) fn refuses_children(error: &TransferError) -> bool {
    let about_children = ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"];
    error.side == Side::Destination
        && error.why.codes.iter().any(|error| about_children.contains(&error.code.as_str()))
}

/// Whether a manifest names URLs of foreign layers.
pub(super) fn foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_slice(manifest).ok();
    let layers = document.as_ref().and_then(|document| document.get("layers")?.as_array());
    layers.into_iter().flatten().any(|layer| layer.get("urls").is_some())
}
