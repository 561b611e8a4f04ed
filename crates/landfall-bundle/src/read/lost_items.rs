//! Determines the items that need damaged or lost content.

use super::bundle::Bundle;
use crate::format::entry::TarEntry;
use crate::format::names::ItemName;
use landfall_model::Digest;
use std::collections::HashSet;

/// The items in the bundle that need an entry for which `is_lost` is true. `None` if the lock
/// cannot be read.
pub(super) fn lost_items(
    bundle: &Bundle,
    is_lost: impl Fn(&TarEntry) -> bool,
) -> Option<Vec<ItemName>> {
    let entries = bundle.entries().ok()?;
    let lost = bundle
        .contents()
        .entries
        .iter()
        .filter(|entry| entry.is_blob() && is_lost(entry));
    let lost: HashSet<&Digest> = lost.map(|entry| &entry.digest).collect();
    let affected = entries.into_iter().filter(|entry| {
        entry
            .parts
            .iter()
            .any(|part| lost.contains(&part.descriptor.digest))
    });
    Some(
        affected
            .map(|entry| ItemName {
                kind: entry.kind,
                name: entry.name,
            })
            .collect(),
    )
}
