//! The share of a lock that one shard pulls. Each digest belongs to exactly one shard.

use landfall_content::{EntryPart, LockEntry, PartOrigin, ShardEntry};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::ReportItem;
use landfall_model::{Digest, Shard, transfer_cost};
use std::collections::{BTreeMap, BTreeSet};

/// The share of a lock that one shard pulls: the whole lock if there is only one shard.
pub(crate) struct ShardShare<'a> {
    lock: &'a Lock,
    shard: Shard,
    /// The digests of this shard; empty if there is only one shard.
    own: BTreeSet<Digest>,
}

impl<'a> ShardShare<'a> {
    /// Computes the share of this shard. It depends only on the lock and the shard, so pulls of
    /// different shards need not communicate.
    pub(crate) fn new(lock: &'a Lock, shard: Shard) -> ShardShare<'a> {
        let mut costs = BTreeMap::new();
        if !shard.is_only() {
            for part in lock.each_entry().flat_map(|entry| entry.parts) {
                costs.insert(
                    assigned_digest(&part).clone(),
                    transfer_cost(part.descriptor.size),
                );
            }
        }
        ShardShare {
            lock,
            shard,
            own: shard.own(costs),
        }
    }

    /// The entries of the lock that have parts in this shard, in the lock's order.
    pub(crate) fn each(&self) -> impl Iterator<Item = ShardEntry> {
        self.lock.each_entry().filter_map(|entry| {
            if self.shard.is_only() {
                Some(ShardEntry::whole(entry))
            } else {
                ShardEntry::filter(entry, |part| self.own.contains(assigned_digest(part)))
            }
        })
    }

    /// Like [`ShardShare::each`], without the number of parts that other shards have.
    pub(crate) fn each_entry(&self) -> impl Iterator<Item = LockEntry> {
        self.each().map(|own| own.entry)
    }

    /// The entry of the lock with all its parts, of which `own` has some.
    pub(crate) fn whole_entry(&self, own: &LockEntry) -> Option<LockEntry> {
        let is_same = |entry: &LockEntry| {
            (entry.kind, &entry.name, &entry.digest) == (own.kind, &own.name, &own.digest)
        };
        self.lock.each_entry().find(is_same)
    }

    /// The losses of the lock. Only the first shard returns them, so that they are reported once.
    pub(crate) fn losses(&self) -> Vec<ReportItem> {
        if self.shard.is_first() {
            losses(self.lock)
        } else {
            Vec::new()
        }
    }
}

/// The digest that decides to which shard a part belongs. A trimmed index is computed from the
/// whole index, so it belongs to the same shard.
fn assigned_digest(part: &EntryPart) -> &Digest {
    match &part.origin {
        PartOrigin::Trimmed { of, .. } => &of.digest,
        _ => &part.descriptor.digest,
    }
}
