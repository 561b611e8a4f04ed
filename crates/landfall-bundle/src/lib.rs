//! The bundle: one `.tar.zst` that is also an OCI image layout, readable by offset.
//!
//! `docs/reference/bundle-format.md` draws the format byte by byte. Each folder imports only the
//! folders before it, except that an entry of a [`plan`] may contain a recipe of [`recipe`]:
//!
//! 1. [`format`](self::format): bytes without files;
//! 2. [`plan`]: the content, its order, and the blobs that a delta omits;
//! 3. [`read`]: open, read by offset, verify;
//! 4. [`write`](self::write()): write a bundle from a store, in one file or in volumes;
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

pub mod image_archive;
pub mod sbom;

mod direct;
mod error;
mod format;
mod pipeline;
mod plan;
mod read;
mod recipe;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub mod testkit;
mod write;

pub use direct::{DirectBundle, DirectStart};
pub use error::BundleError;
pub use format::base_name::BaseName;
pub use format::blob_recipe::{BlobRecipe, BlobReference};
pub use format::contents::{PackOptions, Serial};
pub use format::files::volume_path;
pub use format::header as tar_header;
pub use format::volume_size::VolumeSize;
pub use plan::DeltaBase;
pub use plan::PackPlan;
pub use read::{Bundle, BundleSigner, VerifiedBundle, verify};
pub use read::{UnopenedBundle, is_split, name_bad_volumes, volume_locations};
pub use read::{shard_parts, verify_shard};
pub use recipe::{BaseWriter, OldContent, RebuiltBlobs, RecipeBlobs};
pub use recipe::{
    PatchedBlob, RecipeSummary, ScratchError, UnpatchedBlob, UnpatchedReason, scratch_folder,
};
pub use recipe::{estimate_recipes, plan_recipes};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use testkit::fuzz;
pub use write::{Packaging, PackedBundle, add_signature, write_packaged, write_to};
pub use write::{StreamTarget, write_stream, write_volume};
