//! How many manifests refer to an item, by what they are.

use landfall_bundle::sbom::referrer_kind;
use landfall_content::{BlobRead, Entry};
use std::collections::BTreeMap;

/// How many manifests refer to `entry`, by what they are. `blobs` has their types, which no tag
/// tells.
pub(crate) fn referring(
    entry: &Entry,
    blobs: Option<&dyn BlobRead>,
) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for referrer in &entry.referrers {
        *counts
            .entry(referrer_kind(referrer, blobs).word())
            .or_default() += 1;
    }
    counts
}
