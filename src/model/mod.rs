//! The terms of the field as types: digest, reference, platform, descriptor, manifest, destination, size, limits.
//! No I/O happens here.

mod chart_version;
mod consumer;
mod date;
mod descriptor;
mod destination;
mod digest;
mod docker_hub;
mod host_aliases;
mod host_name;
mod layout;
mod limits;
mod manifest;
pub mod media_type;
mod platform;
mod reference;
mod referrer;
mod shard;
mod size;
mod update_policy;
mod version;
mod version_range;

pub(crate) use chart_version::{ChartVersion, VersionRange};
pub(crate) use consumer::{Consumer, prefix_of};
pub use date::today;
pub use descriptor::Descriptor;
pub(crate) use destination::{Destination, DestinationRules, TargetError};
pub use destination::{Mapping, Target};
pub(crate) use destination::{holds_account, host_component, without_userinfo};
pub use digest::{Algorithm, Digest};
pub(crate) use digest::{DigestError, Hasher};
pub(crate) use digest::{hex, unhex};
pub(crate) use docker_hub::canonical_host;
pub(crate) use host_aliases::{names_of, other_hosts};
pub(crate) use host_name::is_dns_name;
pub(crate) use layout::{INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT};
pub use limits::Limits;
pub use manifest::trim_index;
pub(crate) use manifest::{Child, Manifest, ManifestError};
pub(crate) use media_type::MediaType;
pub(crate) use platform::Platform;
pub use reference::ImageRef;
pub(crate) use reference::{ReferenceError, is_repository, is_repository_component, is_tag, names_host};
pub(crate) use referrer::{
    ENTRY_ANNOTATIONS, Referring, cosign_tags, merge_referrers, referrers_tag, referring, tagged_subject,
};
pub use shard::Shard;
pub(crate) use shard::ShardError;
pub use shard::{cost, split};
pub(crate) use size::{human_size, parse_size};
pub(crate) use update_policy::{PolicyError, UpdatePolicy};
pub(crate) use version::Version;
