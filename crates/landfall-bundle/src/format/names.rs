//! Names that the format defines, and the identity of an item.

use landfall_model::report::EntryKind;
use landfall_model::{Digest, INDEX_FILE, LAYOUT_FILE};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The names of the first two entries, which make the tar an OCI image layout.
pub(crate) const LAYOUT: [&str; 2] = [LAYOUT_FILE, INDEX_FILE];
/// The name of the lock's entry.
pub(crate) const LOCK: &str = landfall_item::lockfile::FILE_NAME;
/// The number of entries before the blobs: the layout's files, and the lock.
pub(crate) const FRONT_LEN: usize = LAYOUT.len() + 1;
/// The name of the frame table's entry.
pub(crate) const FRAMES: &str = "landfall-frames";
/// The name of the contents index's entry.
pub(crate) const CONTENTS: &str = "landfall-contents.json";
/// The word in `requires` for a bundle that needs content of its bases.
pub(crate) const DELTA: &str = "delta";
/// The word in `requires` for a bundle with recipes in place of blobs.
pub(crate) const RECIPE: &str = "recipe";
/// The prefix of the names of entries with recipes.
pub(crate) const RECIPE_PREFIX: &str = "landfall-recipe-";
/// The media type of a recipe.
pub(crate) const RECIPE_TYPE: &str = "application/vnd.landfall.recipe.v1";

/// The namespace of signatures over contents indexes (PROTOCOL.sshsig).
pub(crate) const NAMESPACE: &str = "landfall-bundle-v1";
/// The namespace of signatures over the checksum file.
pub(crate) const SUMS_NAMESPACE: &str = "landfall-sums-v1";

/// The identity of an item in a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemName {
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name in the lock.
    pub name: String,
}

/// An item of the lock that is missing from a bundle, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedItem {
    /// The item that is missing.
    pub item: ItemName,
    /// The digest, if the lock has one.
    pub digest: Option<Digest>,
    /// Why the item is missing.
    pub reason: String,
}

impl fmt::Display for OmittedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.item.kind, self.item.name, self.reason)
    }
}
