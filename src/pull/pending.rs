//! The blobs that a pull fetches, and their order.

use super::outcome::PullOutcome;
use super::share::ShardShare;
use landfall_content::{BlobStore, PartOrigin, ScheduledTask, ShardEntry, WriteError};
use landfall_model::{Descriptor, Digest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A blob or manifest to fetch.
pub(super) struct PullTask {
    pub(super) digest: Digest,
    pub(super) size: u64,
    rank: u64,
    pub(super) is_manifest: bool,
    /// The first host that has the blob.
    host: Arc<str>,
    /// The first entry that needs it.
    entry: usize,
}

impl ScheduledTask for PullTask {
    fn host(&self) -> &Arc<str> {
        &self.host
    }
}

impl PullTask {
    /// Whether the task has the default rank, which depends only on its size. Some stores rank
    /// blobs in another way.
    fn is_by_size(&self) -> bool {
        self.rank == u64::MAX - self.size
    }
}

/// Sorts by rank. Blobs that are ranked by size are sorted by entry, the entry with the biggest
/// blob first. Entries then become complete one after another, instead of all at the end with the
/// smallest blobs.
fn sort(tasks: &mut [PullTask]) {
    let mut biggest: HashMap<usize, u64> = HashMap::new();
    for task in tasks.iter().filter(|task| task.is_by_size()) {
        let rank = biggest.entry(task.entry).or_insert(task.rank);
        *rank = task.rank.min(*rank);
    }
    tasks.sort_by_key(|task| {
        if task.is_by_size() {
            (biggest[&task.entry], task.entry, task.rank)
        } else {
            (task.rank, 0, task.rank)
        }
    });
}

/// The blobs to fetch, and the state of their entries.
pub(super) struct Pending {
    pub(super) tasks: Vec<PullTask>,
    pub(super) outcome: PullOutcome,
    pub(super) bytes: u64,
}

impl Pending {
    /// The blobs that are not in `present`, in the order in which they are fetched. Content that is
    /// computed from the lock is written immediately.
    pub(super) fn new(
        share: &ShardShare<'_>,
        into: &dyn BlobStore,
        rehash: bool,
        present: &HashSet<Digest>,
    ) -> Result<Pending, WriteError> {
        let shard_entries: Vec<ShardEntry> = share.each().collect();
        for part in shard_entries
            .iter()
            .flat_map(|shard_entry| &shard_entry.entry.parts)
            .filter(|part| !part.is_stored())
        {
            // removes a damaged copy, which `put` would consider present
            if rehash {
                into.has_blob(&part.descriptor, true)?;
            }
            if let PartOrigin::Computed(bytes) = &part.origin {
                into.put(&part.descriptor, bytes)?;
            }
        }
        let mut tasks = Vec::new();
        let mut bytes = 0_u64;
        let mut outcome = PullOutcome::new(shard_entries.len());
        // one allocation per host, not one per blob of a large lock
        let mut hosts: HashMap<&str, Arc<str>> = HashMap::new();
        for (at, shard_entry) in shard_entries.iter().enumerate() {
            for (index, part) in shard_entry
                .entry
                .parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.is_stored())
            {
                let Descriptor { digest, size, .. } = &part.descriptor;
                if present.contains(digest) {
                    continue;
                }
                if !outcome.parts.contains_key(digest) {
                    let (rank, is_manifest) =
                        (into.fetch_rank(&part.descriptor), part.is_manifest());
                    let host = hosts
                        .entry(part.host())
                        .or_insert_with_key(|host| (*host).into())
                        .clone();
                    let digest = digest.clone();
                    tasks.push(PullTask {
                        digest,
                        size: *size,
                        rank,
                        is_manifest,
                        host,
                        entry: at,
                    });
                    bytes = bytes.saturating_add(*size);
                }
                outcome
                    .parts
                    .entry(digest.clone())
                    .or_default()
                    .wanted
                    .push((at, index));
                outcome.open[at] += 1;
            }
        }
        sort(&mut tasks);
        outcome.shard_entries = shard_entries;
        Ok(Pending {
            tasks,
            outcome,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_sorted_by_entry_unless_the_store_ranks_them() {
        let task = |entry, size, rank: Option<u64>| PullTask {
            digest: Digest::sha256(&[entry as u8, size as u8]),
            size,
            rank: rank.unwrap_or(u64::MAX - size),
            is_manifest: false,
            host: "r.test".into(),
            entry,
        };
        let mut tasks = [
            task(0, 50, None),
            task(0, 1, None),
            task(1, 90, None),
            task(1, 2, None),
            task(2, 70, None),
            task(2, 3, None),
            // a store that ranks its blobs itself
            task(0, 4, Some(8)),
            task(2, 5, Some(7)),
        ];
        sort(&mut tasks);
        let order: Vec<(usize, u64)> = tasks.iter().map(|task| (task.entry, task.size)).collect();
        assert_eq!(
            order,
            [
                (2, 5),
                (0, 4),
                (1, 90),
                (1, 2),
                (2, 70),
                (2, 3),
                (0, 50),
                (0, 1)
            ]
        );
    }
}
