//! The receipt of a push, `push --receipt FILE`: the content of the registry afterwards.

use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The content of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The version of the format: 1.
    pub version: u32,
    /// The registry, `host[:port]`.
    pub registry: String,
    /// The fingerprint of the lock.
    pub lock: Digest,
    /// The destination tags that the registry has.
    pub items: Vec<Delivered>,
    /// The blobs that were uploaded, mounted or looked up, each with a repository that has it.
    pub blobs: BTreeMap<Digest, String>,
    /// The serial number of the last accepted bundle of each series.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, u64>,
    /// The manifests that `push --prune` deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<PrunedManifest>,
}

/// A manifest that was removed because nothing needed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedManifest {
    /// The repository that had it.
    pub repository: String,
    /// The digest of the manifest.
    pub digest: Digest,
    /// The tags that pointed to the manifest. Empty if the manifest was found only through an index
    /// that contains it or through its subject.
    pub tags: Vec<String>,
}

/// One destination tag of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    /// The name in the lock.
    pub name: String,
    /// `repository:tag` at the registry.
    pub at: String,
    /// The digest that the tag points to.
    pub digest: Digest,
    /// The digest in the lock, if the tag points to the trimmed index.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trimmed_from: Option<Digest>,
}
