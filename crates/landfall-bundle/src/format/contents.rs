//! The contents index: every entry of the bundle, and where the frame table is that has the hash of
//! every frame.

use super::base::BaseName;
use super::entry::TarEntry;
use super::frame_table::FrameTable;
use super::names::ItemName;
use landfall_model::{Descriptor, Digest};
use serde::{Deserialize, Serialize};
use std::io;

/// The contents index, in the order of its members. A reader ignores members that it does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Version of the format; 1.
    pub version: u32,
    /// Release of landfall that packed it.
    pub landfall: String,
    /// Options that change the bytes.
    pub options: PackOptions,
    /// What a reader must know to use it: `delta`, or nothing.
    pub requires: Vec<String>,
    /// What the bundle is one of: a name that later bundles share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Its number in the series: a later bundle has a higher one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The locks inside; one in a bundle of this release.
    pub locks: Vec<LockName>,
    /// Items of the lock that are not in the bundle. Empty when it is complete.
    pub partial: Vec<ItemName>,
    /// Bases of a delta: each has all of `omitted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseName>,
    /// Blobs that a delta leaves out, by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Descriptor>,
    /// The frame table, an entry of its own between `entries` and this index.
    pub frames: FrameTable,
    /// All other entries that stand before this index, by position in the file.
    pub entries: Vec<TarEntry>,
}

/// A bundle's place among bundles of the same purpose. A site that took a later one refuses an
/// earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// The name that the bundles of a series share.
    pub series: String,
    /// The bundle's number in the series; a later one has a higher number.
    pub number: u64,
}

/// Options that change a bundle's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// zstd's level for what is compressed.
    pub level: i32,
}

impl Default for PackOptions {
    fn default() -> PackOptions {
        PackOptions { level: 3 }
    }
}

/// A lock inside a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockName {
    /// The entry that holds it.
    pub name: String,
    /// SHA-256 of its text.
    pub fingerprint: Digest,
}

impl Contents {
    /// The index as bytes. Equal indexes give equal bytes.
    ///
    /// # Errors
    /// None that is known.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The place of the entry of the lock.
    pub fn lock_place(&self) -> Option<usize> {
        let name = &self.locks.first()?.name;
        self.entries.iter().position(|entry| entry.name == *name)
    }
}
