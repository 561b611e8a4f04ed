//! OCI content descriptors (image-spec descriptor.md).

use super::{Digest, MediaType};
use serde::{Deserialize, Serialize};

/// An OCI content descriptor, without its optional members (descriptor.md, "Properties").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The digest of the content.
    pub digest: Digest,
    /// The size of the content in bytes.
    pub size: u64,
    /// The media type of the content.
    pub media_type: MediaType,
}
