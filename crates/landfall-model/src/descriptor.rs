//! OCI content descriptors (image-spec descriptor.md), and the fixed names of an image layout and
//! of Docker Hub.

use crate::{Digest, MediaType};
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

// The fixed parts of an OCI image layout (image-layout.md).

/// The file that marks a folder as an OCI image layout.
pub const LAYOUT_FILE: &str = "oci-layout";
/// The content of the file `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// The file with the index of an OCI image layout.
pub const INDEX_FILE: &str = "index.json";

/// The host of Docker Hub in references.
pub(crate) const HUB: &str = "docker.io";

/// Returns the host that references use for `host`: `docker.io` for each name of Docker Hub.
pub fn canonical_host(host: &str) -> &str {
    if matches!(host, "index.docker.io" | "registry-1.docker.io") {
        HUB
    } else {
        host
    }
}
