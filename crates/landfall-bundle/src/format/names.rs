//! The names that the format fixes, and how a bundle names an item of its lock.

use landfall_model::report::EntryKind;
use landfall_model::{Digest, INDEX_FILE, LAYOUT_FILE};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names of the first two entries, which make the tar an OCI image layout.
pub(crate) const LAYOUT: [&str; 2] = [LAYOUT_FILE, INDEX_FILE];
/// Name of the lock inside a bundle.
pub(crate) const LOCK: &str = landfall_item::lockfile::FILE_NAME;
/// How many entries stand before the blobs: the layout's, and the lock.
pub(crate) const FRONT_LEN: usize = LAYOUT.len() + 1;
/// Name of the frame table inside a bundle.
pub(crate) const FRAMES: &str = "landfall-frames";
/// Name of the contents index inside a bundle.
pub(crate) const CONTENTS: &str = "landfall-contents.json";
/// What a bundle requires that leaves out what its bases have.
pub(crate) const DELTA: &str = "delta";

/// What signatures of contents indexes are made for (PROTOCOL.sshsig, "namespace").
pub(crate) const NAMESPACE: &str = "landfall-bundle-v1";
/// What signatures of the checksums beside a bundle are made for.
pub(crate) const SUMS_NAMESPACE: &str = "landfall-sums-v1";

/// An item of a lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemName {
    /// What kind.
    pub kind: EntryKind,
    /// Its name in the lock.
    pub name: String,
}

/// An item that is not complete, and so is left out of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingItem {
    /// Which item.
    pub item: ItemName,
    /// Its digest, where the lock has one.
    pub digest: Option<Digest>,
    /// Why it is left out.
    pub reason: String,
}

impl fmt::Display for MissingItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.item.kind, self.item.name, self.reason)
    }
}
