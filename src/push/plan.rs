//! What goes where, and what stands there already: one HEAD a destination tag, cosign's included.

use super::names;
use super::presence::Presence;
use super::referrers::has_all_referrers;
use landfall_content::registry::RegistrySession;
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::{Destination, DestinationMap, Digest, Shard, transfer_cost};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// One entry to one destination tag.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// Which entry of the lock, by its position in [`Lock::items`].
    pub entry: usize,
    /// Its registry and repository.
    pub destination: Destination,
    /// Tag.
    pub tag: String,
}

/// What stands at a destination tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TagState {
    /// Nothing.
    Nothing,
    /// The digest of the lock.
    Whole,
    /// The trimmed index of the lock.
    Trimmed,
    /// The digest of the lock or its trimmed index, but not all that belongs to it, as far as it
    /// was asked for.
    Bare,
    /// Another digest.
    Other(Digest),
}

/// Every delivery of `lock`, in the lock's order.
pub(super) fn deliveries(lock: &Lock, mapping: &DestinationMap) -> Vec<Delivery> {
    let deliveries = lock.items().enumerate().flat_map(|(entry, item)| {
        let tag = item.tag();
        let delivery = move |destination| Delivery {
            entry,
            destination,
            tag: tag.clone(),
        };
        item.destinations(mapping).into_iter().map(delivery)
    });
    deliveries.collect()
}

/// What of `all` this shard delivers: whole repositories, so that what they share is sent once.
pub(super) fn own(all: Vec<Delivery>, lock: &Lock, shard: Shard) -> Vec<Delivery> {
    if shard.is_only() {
        return all;
    }
    let mut blobs: BTreeMap<&str, BTreeMap<Digest, u64>> = BTreeMap::new();
    for delivery in &all {
        let parts = lock
            .entry(delivery.entry)
            .parts
            .into_iter()
            .map(|part| part.descriptor);
        let of_it = blobs.entry(&delivery.destination.repository).or_default();
        of_it.extend(parts.map(|blob| (blob.digest, transfer_cost(blob.size))));
    }
    let costs = blobs
        .into_iter()
        .map(|(repository, blobs)| (repository.to_owned(), blobs.values().sum()));
    let own = shard.own(costs.collect::<Vec<_>>());
    all.into_iter()
        .filter(|delivery| own.contains(&delivery.destination.repository))
        .collect()
}

/// The deliveries of `todo` in the order in which they begin: the one with the largest blob that no
/// earlier delivery uploads comes first, so that a run does not end waiting for a large blob that
/// began late.
pub(super) fn biggest_first(lock: &Lock, deliveries: &[Delivery], todo: Vec<usize>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut biggest_new = |at: usize| {
        let parts = lock.entry(deliveries[at].entry).parts.into_iter();
        let new = parts
            .map(|part| part.descriptor)
            .filter(|blob| seen.insert(blob.digest.clone()));
        new.map(|blob| blob.size).max()
    };
    let mut sized: Vec<_> = todo.into_iter().map(|at| (biggest_new(at), at)).collect();
    sized.sort_by_key(|(size, _)| Reverse(*size));
    sized.into_iter().map(|(_, at)| at).collect()
}

/// How much a registry is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupScope {
    /// For every manifest and blob that belongs to what stands at a tag.
    pub(super) parts: bool,
    /// By an account that writes there later in the run: what it may not read counts as absent.
    pub(super) writes: bool,
}

/// Asks the registry what stands at each destination tag. Nothing can stand under a name that no
/// registry holds.
pub(super) async fn standings(
    session: &RegistrySession,
    lock: &Lock,
    deliveries: &[Delivery],
    jobs: usize,
    asked: LookupScope,
) -> Vec<Result<TagState, HttpError>> {
    let presence = Presence::new(session, true);
    let asking = run_concurrently(deliveries.len(), jobs, async |at: usize| {
        let delivery = &deliveries[at];
        let (entry, repository) = (
            &lock.entry(delivery.entry),
            &delivery.destination.repository,
        );
        if names::fault(&delivery.destination).is_some() {
            return Ok(TagState::Nothing);
        }
        let found = session
            .head_manifest(repository, &delivery.tag, asked.writes)
            .await?;
        let standing = match found {
            None => TagState::Nothing,
            Some(digest) if digest == entry.top.digest => TagState::Whole,
            Some(digest)
                if entry
                    .trimmed()
                    .is_some_and(|part| part.descriptor.digest == digest) =>
            {
                TagState::Trimmed
            }
            Some(digest) => TagState::Other(digest),
        };
        let is_there = matches!(standing, TagState::Whole | TagState::Trimmed);
        if is_there {
            let whole = has_all_referrers(session, entry, repository, asked.writes).await?
                && (!asked.parts || is_whole(&presence, entry, delivery).await?);
            return Ok(if whole { standing } else { TagState::Bare });
        }
        Ok(standing)
    });
    asking.await
}

/// Whether all of the entry is there. What the registry refuses to say is brought again.
async fn is_whole(
    presence: &Presence<'_>,
    entry: &LockEntry,
    delivery: &Delivery,
) -> Result<bool, HttpError> {
    match presence
        .missing(entry, &delivery.destination.repository)
        .await
    {
        Err(error) if matches!(error.kind, ErrorKind::Status(400..500)) => Ok(false),
        missing => Ok(missing?.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_repositories_and_each_delivery_is_made_once() {
        let image = |name: &str, tag: &str, size: u64| {
            let (own, layer) = (
                Digest::sha256(format!("{name}{tag}").as_bytes()),
                Digest::sha256(name.as_bytes()),
            );
            format!(
                "- name: r.test/{name}:{tag}\n  digest: {own}\n  mediaType: m\n  size: 9\n  blobs:\n  - {layer} {size} l\n"
            )
        };
        let names = ["a", "b", "c", "d", "e"];
        let text: String = names
            .iter()
            .flat_map(|name| ["v1", "v2"].map(|tag| image(name, tag, 70_000_000)))
            .collect();
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{text}")).unwrap();
        let all = deliveries(&lock, &DestinationMap::to("far.test".parse().unwrap()));
        for count in [1, 2, 3, 7] {
            let mut made = Vec::new();
            let mut homes = BTreeMap::new();
            for number in 1..=count {
                let own = own(all.clone(), &lock, Shard::new(number, count).unwrap());
                for delivery in own {
                    let home = *homes
                        .entry(delivery.destination.repository)
                        .or_insert(number);
                    assert_eq!(home, number, "a repository is one shard's");
                    made.push(delivery.entry);
                }
            }
            made.sort_unstable();
            assert_eq!(made, (0..all.len()).collect::<Vec<_>>(), "{count}");
            assert_eq!(
                homes.values().collect::<HashSet<_>>().len(),
                count.min(names.len()),
                "all have some"
            );
        }
    }

    #[test]
    fn whoever_brings_a_big_blob_first_begins_first() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        // two on one base, two on another, and one without
        let images = [
            ("a", "base", 40),
            ("b", "base", 40),
            ("c", "other", 90),
            ("d", "other", 90),
            ("e", "own", 50),
        ];
        let image = |(name, layer, size): (&str, &str, u64)| {
            let (own, layer) = (digest(name), digest(layer));
            format!(
                "- name: r.test/{name}:v1\n  digest: {own}\n  mediaType: m\n  size: 9\n  blobs:\n  - {layer} {size} l\n"
            )
        };
        let text: String = images.into_iter().map(image).collect();
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{text}")).unwrap();
        let deliveries = deliveries(&lock, &DestinationMap::to("far.test".parse().unwrap()));
        let order = biggest_first(&lock, &deliveries, (0..images.len()).collect());
        let names: Vec<&str> = order.into_iter().map(|at| images[at].0).collect();
        assert_eq!(names, ["c", "e", "a", "b", "d"]);
    }
}
