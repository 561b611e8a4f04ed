//! Recipes, by which a bundle describes blobs instead of containing them.
//!
//! A recipe has two parts. The *patch* (`landfall-patch`) describes the plain bytes of the blob
//! (for example a tar archive or a program) by parts of other blobs, the bases. For a compressed
//! blob, the *stream section* (`landfall-deflate`) describes how these bytes were compressed. The
//! result must have the digest that the lock names, because recipes are not trusted.
//!
//! 1. `plain_file`: the plain bytes of a blob in a temporary file;
//! 2. `make`: makes the recipe of a blob, and proves it by rebuilding the blob from its bases;
//! 3. `planner`: chooses as bases blobs that a new blob probably resembles, and replaces blobs of a
//!    plan by recipes, or estimates the savings;
//! 4. [`RebuiltBlobs`]: content with all blobs that can be rebuilt from it, and the blobs that must
//!    be downloaded before; [`RecipeBlobs`]: only the rebuilt blobs.

pub(crate) mod make;
mod plain_file;
mod planner;
mod rebuilt_blobs;

pub use self::plain_file::{ScratchError, scratch_folder};
pub use self::planner::{
    OldContent, PatchedBlob, RecipeSummary, UnpatchedBlob, UnpatchedReason, estimate_recipes,
    plan_recipes,
};
pub use self::rebuilt_blobs::{BaseWriter, RebuiltBlobs, RecipeBlobs};
