//! Determines the items that need damaged or lost content.

use super::bundle::Bundle;
use crate::format::entry::TarEntry;
use crate::format::frame_table::TableFrame;
use crate::format::names::ItemName;
use crate::format::stored::stored_len;
use landfall_model::Digest;
use std::collections::HashSet;
use std::ops::Range;

/// The items in the bundle that need an entry for which `is_lost` is true. `None` if the lock
/// cannot be read.
pub(super) fn lost_items(
    bundle: &Bundle,
    is_lost: impl Fn(&TarEntry) -> bool,
) -> Option<Vec<ItemName>> {
    let items = bundle.entries().ok()?;
    let entries = &bundle.contents().entries;
    let lost = entries
        .iter()
        .filter(|entry| entry.is_blob() && is_lost(entry));
    let mut lost: HashSet<&Digest> = lost.map(|entry| &entry.digest).collect();
    let mut recipes: Vec<_> = bundle.recipes().collect();
    // in this order, a recipe comes after the recipes that rebuild its bases
    recipes.sort_unstable_by_key(|(entry_index, _)| *entry_index);
    for (entry_index, recipe) in recipes {
        if is_lost(&entries[entry_index]) || recipe.from.iter().any(|base| lost.contains(base)) {
            lost.insert(&recipe.blob.digest);
        }
    }
    let affected = items.into_iter().filter(|item| {
        item.parts
            .iter()
            .any(|part| lost.contains(&part.descriptor.digest))
    });
    Some(
        affected
            .map(|item| ItemName {
                kind: item.kind,
                name: item.name,
            })
            .collect(),
    )
}

impl Bundle {
    /// The frames of the frame table that are needed to read an entry.
    pub(super) fn table_frames(&self, entry: &TarEntry) -> impl Iterator<Item = TableFrame> {
        self.contents().frames.frames_with_rows(entry.rows())
    }

    /// Whether the content of an entry can be read without these bytes of the bundle.
    pub(crate) fn is_readable_without(&self, lost: &Range<u64>, entry: &TarEntry) -> bool {
        let is_apart = |start: u64, end: u64| end <= lost.start || start >= lost.end;
        // reading content needs no tar headers, so losing only those does not affect it
        is_apart(entry.content_offset(), entry.end())
            && self.table_frames(entry).all(|frame| {
                let length = stored_len(frame.content as u64);
                is_apart(frame.offset, frame.offset + length)
            })
    }
}
