//! What of a lock one shard pulls: each digest is one shard's.

use landfall_content::{EntryPart, LockEntry, PartOrigin, ShardEntry};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::ReportItem;
use landfall_model::{Digest, Shard, transfer_cost};
use std::collections::{BTreeMap, BTreeSet};

/// What of a lock one shard pulls. Of an only shard it is all.
pub(crate) struct ShardShare<'a> {
    lock: &'a Lock,
    shard: Shard,
    /// Not for an only shard.
    own: BTreeSet<Digest>,
}

impl<'a> ShardShare<'a> {
    /// What of `lock` this shard pulls.
    pub(crate) fn new(lock: &'a Lock, shard: Shard) -> ShardShare<'a> {
        let mut costs = BTreeMap::new();
        if !shard.is_only() {
            for part in lock.each_entry().flat_map(|entry| entry.parts) {
                costs.insert(home(&part).clone(), transfer_cost(part.descriptor.size));
            }
        }
        ShardShare {
            lock,
            shard,
            own: shard.own(costs),
        }
    }

    /// The entries of the lock of which something is this shard's, in the lock's order.
    pub(crate) fn each(&self) -> impl Iterator<Item = ShardEntry> {
        self.lock.each_entry().filter_map(|entry| {
            if self.shard.is_only() {
                Some(ShardEntry::whole(entry))
            } else {
                ShardEntry::filter(entry, |part| self.own.contains(home(part)))
            }
        })
    }

    /// As [`ShardShare::each`], without what the others have.
    pub(crate) fn each_entry(&self) -> impl Iterator<Item = LockEntry> {
        self.each().map(|own| own.entry)
    }

    /// The losses of the lock, which the first shard tells.
    pub(crate) fn losses(&self) -> Vec<ReportItem> {
        if self.shard.is_first() {
            losses(self.lock)
        } else {
            Vec::new()
        }
    }
}

/// By which digest it is known whose a part is. A trimmed index is made of the whole one, where
/// that is.
fn home(part: &EntryPart) -> &Digest {
    match &part.origin {
        PartOrigin::Trimmed { of, .. } => &of.digest,
        _ => &part.descriptor.digest,
    }
}
