//! The contents index: every entry of the bundle, and the location of the frame table, which has
//! the hash of every frame.

use super::base_name::BaseName;
use super::blob_recipe::{BlobRecipe, BlobReference};
use super::entry::TarEntry;
use super::frame_table::FrameTable;
use super::names::ItemName;
use landfall_model::{Descriptor, Digest, Limits};
use serde::{Deserialize, Serialize};
use std::io;

/// The contents index. The order of the fields is the order in the JSON. A reader ignores unknown
/// members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsIndex {
    /// The version of the format: 1.
    pub version: u32,
    /// The release of landfall that packed the bundle.
    pub landfall: String,
    /// The options that affect the bytes of the bundle.
    pub options: PackOptions,
    /// Features that a reader must support: `delta`, `recipe`, both, or none.
    pub requires: Vec<String>,
    /// The name of the series that the bundle belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The number of the bundle in its series: a later bundle has a higher number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The locks in the bundle; this release writes exactly one.
    pub locks: Vec<LockName>,
    /// The items of the lock that the bundle lacks. Empty if the bundle is complete.
    pub partial: Vec<ItemName>,
    /// The bases of a delta. Each of them contains all omitted blobs and all references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseName>,
    /// The blobs that a delta omits, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Descriptor>,
    /// The blobs that the bundle has recipes for, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<BlobRecipe>,
    /// The blobs that recipes use, and that the bundle neither contains nor has recipes for, sorted
    /// by digest. Each base has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<BlobReference>,
    /// The frame table, which is an entry of its own between `entries` and this index.
    pub frames: FrameTable,
    /// All other entries, in the order of the file.
    pub entries: Vec<TarEntry>,
}

/// The position of a bundle in a series. A site that accepted a bundle refuses earlier ones of the
/// series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// The name of the series.
    pub series: String,
    /// The number of the bundle in its series; a later bundle has a higher number.
    pub number: u64,
}

/// The options that affect the bytes of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackOptions {
    /// The compression level of zstd.
    pub level: i32,
}

impl Default for PackOptions {
    fn default() -> PackOptions {
        // another default would give other bytes for the same lock
        PackOptions { level: 3 }
    }
}

/// A lock in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockName {
    /// The name of the entry with the lock.
    pub name: String,
    /// SHA-256 of the text of the lock.
    pub fingerprint: Digest,
}

/// The maximum length of a contents index, in bytes, if the bundle has `bundle_length` bytes. It
/// bounds the memory that a hostile bundle can make a reader allocate. In the index, an entry is
/// shorter than its tar header of 512 bytes in the bundle. The blobs that a delta omits have no tar
/// header; their list may use the 64 MiB.
pub(crate) fn max_index_length(bundle_length: u64, limits: &Limits) -> u64 {
    (limits.contents_bytes as u64).min(bundle_length.saturating_add(64 << 20))
}

impl ContentsIndex {
    /// Serializes the index. Equal indexes have equal bytes.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        // a line feed at the end, for tools that print the index
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The position of the lock in `entries`.
    pub fn lock_index(&self) -> Option<usize> {
        // the format allows several locks; this release writes and reads one
        let name = &self.locks.first()?.name;
        self.entries.iter().position(|entry| entry.name == *name)
    }
}
