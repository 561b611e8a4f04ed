//! The savings by recipes, for each blob.

use landfall_model::{Descriptor, Digest, sum_sizes};

/// The savings by recipes. Lists only layers and files that are large enough for a recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipeSummary {
    /// The blobs with a recipe, in the order of the plan.
    pub patched: Vec<PatchedBlob>,
    /// The blobs without a recipe.
    pub unpatched: Vec<UnpatchedBlob>,
}

impl RecipeSummary {
    /// The size in bytes of the blobs that have a recipe.
    pub fn patched_bytes(&self) -> u64 {
        sum_sizes(self.patched.iter().map(|one| one.blob.size))
    }

    /// The size in bytes of the recipes.
    pub fn recipe_bytes(&self) -> u64 {
        sum_sizes(self.patched.iter().map(|one| one.recipe_bytes))
    }
}

/// A blob with a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedBlob {
    /// The blob.
    pub blob: Descriptor,
    /// The size of its recipe in bytes.
    pub recipe_bytes: u64,
    /// The blobs that the recipe uses.
    pub from: Vec<Digest>,
}

/// A blob without a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpatchedBlob {
    /// The blob.
    pub blob: Descriptor,
    /// Why it has no recipe.
    pub reason: UnpatchedReason,
}

/// Why a blob has no recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnpatchedReason {
    /// Its compression cannot be described in few bytes, or it has too many plain bytes.
    Compression,
    /// There is no older version, and a recipe without one would not be much smaller than the blob.
    NoOlderVersion,
    /// There are older versions, but their bytes are not available here.
    OlderVersionElsewhere,
    /// The recipe would not be much smaller than the blob.
    NotSmaller,
    /// The recipe does not rebuild the blob. This is a bug in landfall, if the blob is intact.
    Unproven,
}

impl UnpatchedReason {
    /// The reason for messages.
    pub fn text(self) -> &'static str {
        match self {
            UnpatchedReason::Compression => "its compression cannot be reproduced in few bytes",
            UnpatchedReason::NoOlderVersion => "there is no older version of it",
            UnpatchedReason::OlderVersionElsewhere => {
                "its older version is neither in a bundle of --since nor in the store"
            }
            UnpatchedReason::NotSmaller => "its recipe would not be much smaller",
            UnpatchedReason::Unproven => {
                "landfall made no recipe that restores it; please report this as a bug"
            }
        }
    }
}
