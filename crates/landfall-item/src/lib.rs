//! The items that landfall carries: their kinds, the lock and the manifest.
//!
//! Each kind of item has a folder: its text in the lock, how it is resolved, its manifests and
//! blobs, its destinations, and the names by which it is served and found. [`lockfile`] is the lock
//! as a document. [`manifest`] reads, expands, merges and checks manifests, and imports the lists
//! of other tools.
//!
//! An item has three forms:
//!
//! - A [`ManifestEntry`] is what people write in a manifest. It expands to requests.
//! - An [`ItemRequest`] asks for one item. `lock` resolves it, and `update` looks for newer
//!   versions of it.
//! - A [`LockedItem`] is one item of a lock, an enum with a variant for each kind. Push, serve,
//!   rewrite, audit, bundles and reports work with it.
//!
//! [`ItemKind`] ties the three together, and `kinds.rs` lists all kinds.
//!
//! The crate imports `landfall-model`, `landfall-http`, `landfall-content`, `landfall-git`,
//! `landfall-packages` and `landfall-signature`. Begin with `item_kind.rs` and `locked_item.rs`.
//!
//! # How each kind is carried
//!
//! A file is an OCI artifact whose manifest is computed from the lock, so the same code transfers
//! images and files, and any registry can store both. A chart from a registry is carried as its own
//! artifact; a chart from an HTTP repository is wrapped into such an artifact. A set of packages is
//! one artifact with a layer for each index, package and key; the metadata of `index: trimmed` is
//! generated and signed with the site's key when it is served or exported, so that lock and bundle
//! contain the metadata that the repositories signed.
//!
//! A git repository is an artifact whose config lists the refs, with a layer for each pack. `lock`
//! writes the packs, since their digests are in the lock; `pull` finds them in the store, or writes
//! them again from the objects that the server sends.
//!
//! A provider of OpenTofu or Terraform is an index with a manifest and a zip archive for each
//! platform, as OpenTofu reads them from a registry.
//!
//! Referrers of an image (signatures, attestations, SBOMs) are parts of its entry, so an item is
//! complete only with its signatures. A locked item may depend on other items
//! ([`ItemRequest::dependencies`]): a chart depends on its subcharts and on the images that
//! were found in it, and `lock` repeats until nothing new is requested. The code that reads charts
//! for images is in `landfall-rewrite`, above this crate; so this crate has a trait for it
//! ([`FindImages`]), and the caller of `lock` passes the implementation.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

mod artifact;
mod chart;
mod file;
mod git;
mod image;
mod item_kind;
mod kinds;
mod local;
mod lock_yaml;
mod locked_item;
pub mod lockfile;
pub mod manifest;
mod packages;
mod provider;
mod repositories;
mod requested_name;
mod resolver;
mod text;
mod version_selector;

#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use crate::chart::fuzz as read_chart;
pub use crate::chart::{
    ChartArchive, ChartImage, ChartName, ChartRequest, Discovery, FindImages, FoundImages,
    LockedChart, OpenReference, chart_versions, clash, index as chart_index, index_entry,
    schema_urls,
};
pub use crate::file::{FileRequest, LockedFile, LockedSidecar, UrlFile, file_repository};
pub use crate::git::{
    GitRequest, LockedGitRef, LockedGitRepository, LockedGitSubmodule, LockedLargeFile,
    VerifiedGitRef,
};
pub(crate) use crate::image::verified_signatures;
pub use crate::image::{
    BundleImages, ImageRequest, ItemSignatureError, LockedImage, LockedManifest, LockedReferrer,
    LockedTrimmedIndex, OneManifest, ReadError, Selection, SelectionError, listed, platforms,
    tag_of,
};
pub(crate) use crate::item_kind::expand_entry;
pub use crate::item_kind::{
    DependencyRequest, EntryContext, EntryFields, EntryPathStep, EntryReader, ItemKind,
    ItemRequest, ManifestEntry, ManifestResult, MovableVersion, PinPolicy, ResolveOutcome,
    UpstreamStatus,
};
pub use crate::kinds::{has_files, item_kinds, kind_named, locked_name, parse_exclusion};
pub use crate::local::LocalPlace;
pub use crate::locked_item::LockedItem;
pub use crate::lockfile::SignatureVerdicts;
pub use crate::manifest::{ItemRequests, RequestSummary, RequestVisitor};
pub use crate::packages::{
    GeneratedFile, LockedPackage, LockedPackageSet, NewerVersions, OfferedIndex, OfferedVersion,
    PackageAvailability, PackageDescription, PackageIndex, PackageSetRequest, PackageSource,
    PackageSummary, PinnedPackage, newer_packages, trimmed_metadata,
};
pub use crate::provider::{
    LockedProvider, LockedProviderPackage, MirrorFile, ProviderAddress, ProviderMirror,
    ProviderName, ProviderPlatform, ProviderRequest, provider_versions,
};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use crate::provider::{read_provider_lock_file, read_provider_package, zip_package};
pub use crate::requested_name::{RequestedName, namespace};
pub use crate::resolver::{LostReferrer, LostReferrers, ResolveError, Resolver};
pub use crate::text::{Exclusion, FieldConflict, host_in, quoted};
pub use crate::version_selector::{PackageVersions, VersionSelector, VersionSource};
