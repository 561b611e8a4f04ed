//! What a push left at the far side, written down: `push --receipt FILE`.

use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The content of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Version of the format; 1.
    pub version: u32,
    /// The registry, `host[:port]`.
    pub registry: String,
    /// Fingerprint of the lock.
    pub lock: Digest,
    /// Each destination tag.
    pub items: Vec<Delivered>,
    /// A repository in which each blob stands that was sent, mounted or asked for.
    pub blobs: BTreeMap<Digest, String>,
    /// The last bundle of each series that was taken: its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, u64>,
    /// What `push --prune` removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<PrunedManifest>,
}

/// A manifest that nobody needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedManifest {
    /// Its repository.
    pub repository: String,
    /// Its digest.
    pub digest: Digest,
    /// The tags that stood at it; none, where only an index or what it refers to led to it.
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
    /// The digest that the tag stands at.
    pub digest: Digest,
    /// The digest of the lock, where the tag stands at the trimmed index.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trimmed_from: Option<Digest>,
}
