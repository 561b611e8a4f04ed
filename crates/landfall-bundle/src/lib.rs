//! The bundle: one `.tar.zst` that is also an OCI image layout, readable by offset.
//!
//! `docs/reference/bundle-format.md` draws the format byte by byte. Each folder imports only the
//! folders before it, except that an entry of a [`plan`] may contain a recipe of [`recipe`]:
//!
//! 1. `format`: bytes without files;
//! 2. [`plan`]: the content, its order, and the blobs that a delta omits;
//! 3. [`read`]: open, read by offset, verify;
//! 4. `write`: write a bundle from a store, in one file or in volumes;
//! 5. [`direct`]: write the same file directly from upstream;
//! 6. [`recipe`]: recipes in place of blobs; a recipe rebuilds its blob from other blobs.
//!
//! [`image_archive`] writes the images of a lock as an archive that container runtimes load, and
//! [`sbom`] describes a bundle as CycloneDX.
//!
//! [`error`] and [`pipeline`] (work in order on several threads) serve all of them; `testkit` is
//! for tests and fuzz targets.
//!
//! This crate imports `landfall-model`, `landfall-content` and `landfall-item`, and for recipes
//! `landfall-patch` and `landfall-deflate`. Begin with `format/contents.rs` and `read/mod.rs`.

mod direct;
mod error;
mod format;
pub mod image_archive;
mod pipeline;
mod plan;
mod read;
mod recipe;
pub mod sbom;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub mod testkit;
mod write;

pub use crate::direct::{DirectBundle, DirectStart};
pub use crate::error::BundleError;
pub use crate::format::blob_recipe::{BlobRecipe, BlobReference};
pub use crate::format::contents::{PackOptions, Serial};
pub use crate::format::header as tar_header;
pub use crate::format::names::{BaseName, ItemName, VolumeSize, volume_path};
pub use crate::plan::{DeltaBase, PackPlan};
pub use crate::read::{
    Bundle, BundleSigner, UnopenedBundle, VerifiedBundle, is_split, name_bad_volumes, shard_parts,
    verify, verify_shard, volume_locations,
};
pub use crate::recipe::{
    BaseWriter, OldContent, PatchedBlob, RebuiltBlobs, RecipeBlobs, RecipeSummary, ScratchError,
    UnpatchedBlob, UnpatchedReason, estimate_recipes, plan_recipes, scratch_folder,
};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use crate::testkit::fuzz;
pub use crate::write::{
    Packaging, PackedBundle, StreamTarget, add_signature, check_bundle_path, write_packaged,
    write_stream, write_to, write_volume,
};
