//! What of an entry one of several shards has.

use super::{EntryPart, LockEntry};
use landfall_model::report::ReportItem;

/// What of an entry one of several shards has.
pub struct ShardEntry {
    /// The entry with these parts alone.
    pub entry: LockEntry,
    /// How many parts it has in all.
    pub all: usize,
}

impl ShardEntry {
    /// The parts of `entry` that `is_own`; `None` where there is none.
    pub fn of(mut entry: LockEntry, is_own: impl Fn(&EntryPart) -> bool) -> Option<ShardEntry> {
        let all = entry.parts.len();
        entry.parts.retain(is_own);
        (!entry.parts.is_empty()).then_some(ShardEntry { entry, all })
    }

    /// All of an entry.
    pub fn all(entry: LockEntry) -> ShardEntry {
        ShardEntry {
            all: entry.parts.len(),
            entry,
        }
    }

    /// Whether it is all of the entry.
    pub fn is_all(&self) -> bool {
        self.entry.parts.len() == self.all
    }

    /// As an item of a report, that is there. Where it is not all of the entry, the reason says so.
    pub fn item(&self) -> ReportItem {
        let own = self.entry.parts.len();
        let reason = || {
            format!(
                "{own} of its {} parts; other shards have the rest",
                self.all
            )
        };
        ReportItem {
            reason: (!self.is_all()).then(reason),
            ..self.entry.item()
        }
    }
}
