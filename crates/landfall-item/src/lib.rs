//! What is carried: the kinds of items, the lock, and the manifest.
//!
//! One folder a kind of item: its text in the lock, how it is resolved, its parts, its
//! destinations, and the names by which it is served and found. Everybody else asks the item.
//! [`lockfile`] is the lock as a document, and [`manifest`] reads, expands, merges and checks
//! manifests, and imports the lists of other tools.
//!
//! Two traits say what a kind is. [`LockedItem`] is one item of a lock: push, serve, rewrite,
//! audit, bundles and reports know nothing else of it and branch on no kind. [`ItemKind`] is how a
//! lock holds a section of such items and how a wish of a manifest is resolved. The table of kinds
//! (`table.rs`) has one row a kind; lock and manifest make their sections from it. A section is a
//! plain list of one type: an item takes no room beside its own, and the order is that of the lock.
//!
//! A new kind is a file here, with the two traits, and a row in the table. The kind `note`, which
//! the tests alone have, shows it.
//!
//! It imports `landfall-model`, `landfall-http`, `landfall-content` and `landfall-packages`. Begin
//! with `kind.rs` and `table.rs`.
//!
//! # How each kind is carried
//!
//! A file is an OCI artifact whose manifest follows from the lock, so one engine moves images and
//! files, and any registry can store both. A chart of a registry is its artifact; a chart of an
//! HTTP repository is wrapped into such an artifact. A set of packages is one artifact with a
//! layer for each index, package and key; the metadata of `index: trimmed` is generated where it
//! is offered, by whoever has the site's key, so that lock and bundle contain what the
//! repositories signed.
//!
//! Referrers of an image (signatures, attestations, SBOMs) are parts of its entry, so an item is
//! complete only with its signatures. A locked item may ask for others: a chart asks for its
//! dependencies and for the images that were found in it, and `lock` repeats until nothing new is
//! asked for. The code that reads charts for images is in `landfall-rewrite`, above this crate; so
//! this crate has a trait for it, and the caller of `lock` passes the implementation.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

pub mod lockfile;
pub mod manifest;

mod ask;
mod chart;
mod entry_reader;
mod exclude;
mod file;
mod image;
mod join;
mod kind;
#[cfg(any(test, feature = "testkit"))]
mod note;
mod packages;
mod policy;
mod repositories;
mod resolver;
mod table;
mod text;

pub use ask::Ask;
pub use chart::chart_versions;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use chart::fuzz as read_chart;
pub use chart::{Chart, ChartImage, ChartName, OpenReference};
pub use chart::{
    ChartArchive, Discovery, FindImages, FoundImages, clash, index as chart_index, index_entry,
};
pub use entry_reader::{Checked, EntryReader};
pub use exclude::Exclude;
pub use file::file_repository;
pub use file::{File, Sidecar};
pub use image::{Image, LockedManifest, Referrer, Trimmed};
pub use image::{OneManifest, ReadError, Selection, SelectionError};
pub use image::{listed, platforms, tag_of};
pub use join::Contradiction;
pub use kind::Pins;
pub use kind::{FileForm, Found, ItemKind, LockedItem, Moving, PinnedBy, Stand, Step};
#[cfg(any(test, feature = "testkit"))]
pub use note::Note;
pub use packages::{
    Carried, DescribeError, MadeFile, OfferedVersion, PackageDescription, PackageForm,
    PackageIndexError, PinnedPackage, TrimError, WantedPackages, newer_packages, trimmed_metadata,
};
pub use packages::{LockedPackage, OfferedIndex, PackageIndex, PackageSet, PackageSource};
pub use resolver::{Cause, Resolver};
pub use table::{KINDS, Wishes, exclusion, has_files, kind_named, locked_name};
pub use text::{host_in, quoted};
