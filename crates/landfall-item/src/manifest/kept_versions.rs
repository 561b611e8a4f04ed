//! The versions of a variable or item that has several at once.

use std::ops::Range;

/// The versions of a variable or item with `keep`.
#[derive(Debug, Clone)]
pub struct KeptVersions {
    /// How many versions an update keeps at most.
    pub count: usize,
    /// The current versions, in the order of the manifest.
    pub values: Vec<String>,
    /// The entries of an item, one for each version; empty for a variable.
    pub(super) entries: Vec<KeptEntry>,
}

/// An entry of an item with `keep`. Each version of the item has an entry of its own.
#[derive(Debug, Clone)]
pub(super) struct KeptEntry {
    /// The position of the entry in its section.
    pub(super) index: usize,
    /// The parsed YAML scalar that contains the version.
    pub(super) text: String,
    /// The bytes of `text` that are the version.
    pub(super) version: Range<usize>,
}

impl KeptVersions {
    /// Whether each version is in an entry of its own.
    pub fn is_of_entries(&self) -> bool {
        !self.entries.is_empty()
    }
}

impl KeptEntry {
    /// The version.
    pub(super) fn current(&self) -> &str {
        &self.text[self.version.clone()]
    }
}
