//! The parts of a lock entry that belong to one of several shards.

use super::{EntryPart, LockEntry};
use landfall_model::report::ReportItem;

/// The parts of a lock entry that belong to this shard.
pub struct ShardEntry {
    /// The entry, reduced to these parts.
    pub entry: LockEntry,
    /// How many parts the whole entry has.
    pub part_count: usize,
}

impl ShardEntry {
    /// Reduces `entry` to the parts that `is_own` accepts; `None` if it accepts none.
    pub fn filter(mut entry: LockEntry, is_own: impl Fn(&EntryPart) -> bool) -> Option<ShardEntry> {
        let part_count = entry.parts.len();
        entry.parts.retain(is_own);
        if entry.parts.is_empty() {
            return None;
        }
        Some(ShardEntry { entry, part_count })
    }

    /// Wraps an entry that belongs to this shard as a whole.
    pub fn whole(entry: LockEntry) -> ShardEntry {
        ShardEntry {
            part_count: entry.parts.len(),
            entry,
        }
    }

    /// Whether this shard has every part of the entry.
    pub fn is_whole(&self) -> bool {
        self.entry.parts.len() == self.part_count
    }

    /// Returns the report item for these parts, with status `present`. If other shards have the
    /// rest, the reason says so.
    pub fn item(&self) -> ReportItem {
        let mut item = self.entry.item();
        if !self.is_whole() {
            item.reason = Some(format!(
                "{} of its {} parts; other shards have the rest",
                self.entry.parts.len(),
                self.part_count
            ));
        }
        item
    }
}
