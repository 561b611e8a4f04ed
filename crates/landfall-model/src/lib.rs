//! The vocabulary of landfall and its documents. The crate does not use the network.
//!
//! The crate root has the terms of the field as types: [`Digest`], [`ImageRef`], [`Platform`],
//! [`Descriptor`], [`Manifest`], [`DestinationMap`], [`Limits`].
//!
//! - [`document`] reads YAML with the position of each value and shows the line of an error. It is
//!   the only way to read YAML.
//! - [`report`] is the report of a command, as JSON, Markdown and HTML.
//! - [`config`] is the site document.
//! - [`sign`] makes and verifies SSH and OpenPGP signatures, and verifies minisign signatures.
//!
//! The crate imports no other crate of landfall. Begin with `digest.rs`, `limits.rs` and
//! `document/yaml.rs`.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

pub mod config;
pub mod document;
pub mod report;
pub mod sign;

mod changed_names;
mod chart_version;
mod consumer;
mod date;
mod descriptor;
mod destination;
mod digest;
mod docker_hub;
mod host_name;
mod json;
mod json_members;
mod layout;
mod limits;
mod manifest;
pub mod media_type;
mod minimum_age;
mod name_pattern;
mod null_default;
mod platform;
mod redaction;
mod reference;
mod referrer;
mod release_lines;
mod shard;
mod size;
mod sync;
mod update_policy;
mod version;
mod version_range;
mod web_url;

pub use changed_names::{CHANGED_NAMES, ChangedName, NODE_LOCAL_DNS, TUNNELING};
pub use changed_names::{alias_hosts, reference_names};
pub use chart_version::{ChartVersion, ChartVersionRange};
pub use consumer::{Consumer, KUBESPRAY_REGISTRIES, path_prefix};
pub use date::{now, today};
pub use descriptor::Descriptor;
pub use destination::{Destination, DestinationRules, TargetRegistryError};
pub use destination::{DestinationMap, TargetRegistry};
pub use destination::{has_userinfo, host_component};
pub use digest::{Algorithm, Digest};
pub use digest::{DigestError, Hasher};
pub use digest::{hex, unhex};
pub use docker_hub::canonical_host;
pub use host_name::{is_dns_name, is_example_name};
pub use json::{from_json, without_bom};
pub use json_members::JsonText;
pub use layout::{INDEX_FILE, LAYOUT_FILE, OCI_LAYOUT};
pub use limits::Limits;
pub use manifest::{ChildManifest, Manifest, ManifestError, UnreadableChild};
pub use manifest::{platform_of_config, trim_index, unreadable_children};
pub use media_type::MediaType;
pub use minimum_age::{MinimumAge, MinimumAgeError};
pub use name_pattern::{
    NamePattern, TextPattern, is_same_host, is_same_name, is_same_url, upstream_host,
};
pub use null_default::null_as_default;
pub use platform::Platform;
pub use redaction::{redact_document, redact_reference, redact_urls, redact_userinfo};
pub use reference::ImageRef;
pub use reference::{ReferenceError, has_host, is_repository, is_repository_component, is_tag};
pub use referrer::{
    ENTRY_ANNOTATIONS, ReferrerManifest, bare_referrers, cosign_tags, merge_referrers,
    read_referrer, referrers_tag, tagged_subject,
};
pub use release_lines::ReleaseLine;
pub use shard::Shard;
pub use shard::ShardError;
pub use shard::{assign_shards, transfer_cost};
pub use size::{human_size, parse_size, sum_sizes};
pub use sync::locked;
pub use update_policy::{PackageVersion, PolicyError, UpdatePolicy};
pub use version::TagVersion;
pub use web_url::{after_web_scheme, is_web_url, normal_web_url};
