//! What a registry's refusal of a manifest is about.

use crate::content::TransferError;
use crate::http::{Error, ErrorKind};
use crate::report::Side;

/// A refusal that an index with missing children gets (distribution-spec, "Error Codes"). Other refusals,
/// of the tag or of the size, are not about children.
pub(super) fn refuses_children(error: &TransferError) -> bool {
    let about_children = ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN", "MANIFEST_INVALID"];
    error.side == Side::Destination && error.codes.iter().any(|code| about_children.contains(&code.as_str()))
}

/// A refusal that a tag which may not be written again gets: ECR and Harbor answer 400, 409 or 412.
pub(super) fn may_be_immutable(error: &Error) -> bool {
    let refused = matches!(error.kind, ErrorKind::Denied | ErrorKind::Status(400 | 405 | 409 | 412));
    let words = error.message.to_ascii_lowercase();
    refused
        && ["immutable", "already exist", "tag_invalid", "overwrit"].iter().any(|word| words.contains(word))
}

/// Whether a manifest names URLs of foreign layers.
pub(super) fn foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_slice(manifest).ok();
    let layers = document.as_ref().and_then(|document| document.get("layers")?.as_array());
    layers.into_iter().flatten().any(|layer| layer.get("urls").is_some())
}
