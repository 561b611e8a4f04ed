//! landfall carries pinned software across an air gap.
//!
//! ```text
//! manifest ──lock──▶ lock ──pull──▶ store ──pack──▶ bundle ──push──▶ private registry
//! (people)         (digests)      (blobs)         (one file)  └serve─▶ nodes pull from the file
//!                                                    │
//!                                       rewrite: point everything at the registry
//! ```
//!
//! A program uses landfall through three types: [`Client`] has the verbs that need a network,
//! [`Store`] holds content, and [`Bundle`] reads a bundle. `examples/mirror.rs` locks a manifest
//! and mirrors it; `examples/rewrite.rs` points a text at a registry with [`rewrite`](fn@rewrite).
//! The features `cli` (the program) and `serve` (the server) are on by default; without them
//! neither clap nor the server is built.
//!
//! Inside, the folders follow the data flow; `docs/explanation/architecture.md` explains their
//! content and the allowed imports.

#![cfg_attr(
    not(feature = "cli"),
    allow(
        dead_code,
        unused_imports,
        reason = "some items are only for the command line"
    )
)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "YAML of a test is read as it is")
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("landfall needs a 64-bit target, because it stores the sizes of blobs as usize");

#[cfg(feature = "cli")]
mod cli;
mod client;
#[cfg(feature = "cli")]
mod doctor;
#[cfg(feature = "cli")]
mod egress;
#[cfg(feature = "cli")]
mod evidence;
#[cfg(all(any(test, fuzzing), feature = "cli", feature = "serve"))]
mod fuzz;
mod lock;
mod pull;
mod push;
mod update;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as command_line;
pub use client::{BundleOptions, Client, ClientBuilder, PulledBundle};
pub use landfall_bundle::{
    Bundle, BundleError, BundleSigner, PackOptions, PackPlan, Packaging, PackedBundle, Serial,
    VerifiedBundle, VolumeSize, add_signature, verify, write_packaged as pack, write_to as pack_to,
};
pub use landfall_content::store::DiskStore as Store;
pub use landfall_content::{BlobRead, CachePolicy, ContentError};
pub use landfall_item::lockfile::{Endpoint, Lock};
pub use landfall_item::manifest::{LoadManifestError, MergedManifest, load as load_manifests};
pub use landfall_item::{LockedChart, LockedFile, LockedImage, LockedPackageSet, PinPolicy};
pub use landfall_model::config::{IndexPolicy, ReferrerPolicy, Site, destination_map};
pub use landfall_model::report::{
    EntryKind, ItemStatus, Progress, ReportItem, RunReport, SilentProgress,
};
pub use landfall_model::sign::{AllowedSigners, PublicKey, Signer};
pub use landfall_model::{
    DestinationMap, Digest, Failure, ImageRef, Limits, Shard, TargetRegistry, today,
};
pub use landfall_rewrite::{ReferenceIndex, RewriteOptions, RewriteResult, TextSyntax, rewrite};
pub use lock::Locked;
pub use push::{GitTarget, Omitted, PushOptions, Pushed};

/// Internals for landfall's own tests and fuzz targets. They may change with any release.
#[doc(hidden)]
pub mod internals {
    #[cfg(all(any(test, fuzzing), feature = "cli", feature = "serve"))]
    pub use crate::fuzz::{TARGETS, Target, run};
    pub use landfall_item::lockfile::{AcceptedLoss, UnresolvedItem};
    pub use landfall_item::{
        ChartImage, ChartName, ItemRequests, LockedManifest, LockedPackage, LockedReferrer,
        LockedSidecar, LockedTrimmedIndex, OfferedIndex, OpenReference, PackageIndex,
        PackageSource, file_repository,
    };
    pub use landfall_model::{
        Algorithm, Descriptor, assign_shards, media_type, transfer_cost, trim_index,
    };
    pub use landfall_rewrite::{
        InputContent, InputFile, ReadAs, ReferenceMeaning, inputs, read, scan,
    };
}
