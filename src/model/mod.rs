//! The words of the trade as types: digest, reference, platform, descriptor, manifest, size, limits.
//! No I/O happens here.

mod digest;
mod layout;
mod limits;
mod manifest;
mod media;
mod platform;
mod reference;
mod referrer;
mod size;

pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub(crate) use digest::{hex, unhex};

pub use layout::{INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT};
pub use limits::Limits;
pub use manifest::{Child, Descriptor, Manifest, ManifestError, media_type, trim_index};
pub use media::MediaType;
pub use platform::{Platform, PlatformError};
pub use reference::{ImageRef, ReferenceError, names_host, repository_of};
pub use referrer::{Referring, cosign_tags, merge_referrers, referrers_tag, referring};
pub use size::{SizeError, human_size, parse_size};
