//! The terms of the field as types: digest, reference, platform, descriptor, manifest, destination, size, limits.
//! No I/O happens here.

mod date;
mod descriptor;
mod destination;
mod digest;
mod host_aliases;
mod layout;
mod limits;
mod manifest;
pub mod media_type;
mod platform;
mod reference;
mod referrer;
mod size;

pub use date::today;
pub use descriptor::Descriptor;
pub(crate) use destination::host_component;
pub use destination::{Destination, DestinationRules, Mapping, Target, TargetError};
pub use digest::{Algorithm, Digest, DigestError, Hasher};
pub(crate) use digest::{hex, unhex};
pub(crate) use host_aliases::{names_of, other_hosts};
pub use layout::{INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT};
pub use limits::Limits;
pub use manifest::{Child, Manifest, ManifestError, trim_index};
pub use media_type::MediaType;
pub use platform::{Platform, PlatformError};
pub use reference::{
    ImageRef, ReferenceError, is_repository, is_repository_component, is_tag, names_host, repository_of,
};
pub use referrer::{Referring, cosign_tags, merge_referrers, referrers_tag, referring};
pub use size::{SizeError, human_size, parse_size};
