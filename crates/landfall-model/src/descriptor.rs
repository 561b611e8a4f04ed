//! Descriptors: what names a piece of content (image-spec descriptor.md).

use super::{Digest, MediaType};
use serde::{Deserialize, Serialize};

/// What names a piece of content: digest, size in bytes and media type (descriptor.md).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The content's digest.
    pub digest: Digest,
    /// The content's size in bytes.
    pub size: u64,
    /// The content's media type.
    pub media_type: MediaType,
}
