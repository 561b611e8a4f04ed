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
//! - Small tools that all crates use: [`HashedStream`] and [`digest_of`] hash streams,
//!   [`Wildcards`] match patterns, [`locked`] and [`unpoisoned`] take locks, [`extend_distinct`]
//!   keeps a list free of repeats, [`split_port`], [`is_dns_name`] and [`is_path_below`] test
//!   names, and [`redact_urls`] masks secrets in texts.
//!
//! The crate imports no other crate of landfall. Begin with `digest.rs`, `limits.rs` and
//! `document/yaml.rs`.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

mod address_range;
mod changed_names;
mod chart_version;
pub mod config;
mod consumer;
mod destination;
mod digest;
pub mod document;
mod failure;
mod file_name;
mod hashed_stream;
mod json;
mod limits;
mod manifest;
pub mod media_type;
mod name_pattern;
mod platform;
mod redaction;
mod reference;
mod referrer;
pub mod report;
mod shard;
pub mod sign;
mod size;
mod std_tools;
mod update_policy;
mod version;
mod version_range;
mod version_selection;
mod web_url;

pub use crate::address_range::{AddressRange, DEFAULT_SERVICES};
pub use crate::changed_names::{
    CHANGED_NAMES, ChangedName, NODE_LOCAL_DNS, TUNNELING, alias_hosts, reference_names,
};
pub use crate::chart_version::{ChartVersion, ChartVersionRange};
pub use crate::consumer::{Consumer, KUBESPRAY_REGISTRIES, path_prefix};
pub use crate::destination::{
    Destination, DestinationMap, DestinationRules, TargetRegistry, has_userinfo, host_component,
    keeping_https,
};
pub use crate::digest::{Algorithm, Digest, DigestError, Hasher, hex, unhex};
pub use crate::failure::{Exit, Failure, FailureParts, RunStatus, TransferSide};
pub use crate::file_name::{FolderPacking, LOCAL_PREFIX, is_file_name, is_path_below, local_path};
pub use crate::hashed_stream::{
    DigestCheckedReader, HashedStream, digest_of, for_each_chunk, has_digest, read_chunks,
};
pub use crate::json::{
    JsonText, from_json, null_as_default, parsed_text, text_or_mapping, without_bom,
};
pub use crate::limits::Limits;
pub use crate::manifest::{
    ChildManifest, Manifest, ManifestError, UnreadableChild, platform_of_config, trim_index,
    unreadable_children,
};
pub use crate::media_type::{
    Descriptor, INDEX_FILE, LAYOUT_FILE, MediaType, OCI_LAYOUT, canonical_host,
};
pub use crate::name_pattern::{
    NamePattern, TextPattern, Wildcards, is_same_host, is_same_name, is_same_url, upstream_host,
};
pub use crate::platform::{Platform, PlatformRequest};
pub use crate::redaction::{redact_document, redact_reference, redact_urls, redact_userinfo};
pub use crate::reference::{
    ImageRef, ReferenceError, has_host, is_repository, is_repository_component, is_tag,
};
pub use crate::referrer::{
    ENTRY_ANNOTATIONS, ReferrerManifest, bare_referrers, cosign_tags, merge_referrers,
    read_referrer, referrers_tag, tagged_subject,
};
pub use crate::shard::{Shard, assign_shards, transfer_cost};
pub use crate::size::{human_size, now, parse_size, sum_sizes, today};
pub use crate::std_tools::{extend_distinct, locked, unpoisoned};
pub use crate::update_policy::{MinimumAge, PackageVersion, UpdatePolicy};
pub use crate::version::TagVersion;
pub use crate::version_selection::VersionSelection;
pub use crate::web_url::{
    after_web_scheme, has_host_characters, has_scheme, is_dns_name, is_example_name, is_web_url,
    normal_web_url, split_optional, split_port, without_brackets, without_scheme,
};
