//! Recipes, by which a bundle describes blobs instead of containing them.
//!
//! A recipe has two parts. The *patch* (`landfall-patch`) describes the plain bytes of the blob
//! (for example a tar archive or a program) by parts of other blobs, the bases. For a compressed
//! blob, the *stream section* (`landfall-deflate`) describes how these bytes were compressed. The
//! result must have the digest that the lock names, because recipes are not trusted.
//!
//! 1. `plain_file`: the plain bytes of a blob in a temporary file;
//! 2. `plain_blobs`: decodes blobs;
//! 3. `predecessors`: the blobs that a new blob probably resembles;
//! 4. `make`: makes the recipe of a blob, and proves it by rebuilding the blob;
//! 5. `planner`: chooses the bases of each blob;
//! 6. `plan`: replaces blobs of a plan by recipes, or estimates the savings;
//! 7. `rebuild`: rebuilds a blob from its recipe and its bases;
//! 8. [`RebuiltBlobs`]: content with all blobs that can be rebuilt from it; [`RecipeBlobs`]: only
//!    the rebuilt blobs;
//! 9. `missing_bases`: the blobs that must be downloaded before a blob can be rebuilt.

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
