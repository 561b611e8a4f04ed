//! The deliveries of a push, and the look-up of their tags: one HEAD for each destination tag. If
//! the tag is right, the referrers of the image and the attestations in its index are looked up too.

use super::names;
use super::presence::Presence;
use super::referrers::has_all_referrers;
use landfall_content::registry::RegistrySession;
use landfall_content::{LockEntry, run_concurrently};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::report::EntryKind;
use landfall_model::{Destination, DestinationMap, Digest, Shard, sum_sizes, transfer_cost};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The delivery of one entry to one destination tag.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// The position of the entry in [`Lock::items`].
    pub entry: usize,
    pub destination: Destination,
    pub tag: String,
}

/// The state of a destination tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TagState {
    /// The tag does not exist.
    Nothing,
    /// The tag points to the digest in the lock.
    Whole,
    /// The tag points to the trimmed index in the lock.
    Trimmed,
    /// The tag points to this digest, that of the lock or of the trimmed index, and only referrers
    /// are missing.
    Unattached(Digest),
    /// The tag points to the digest or the trimmed index in the lock, but a manifest or blob of it
    /// that was looked up is missing.
    Bare,
    /// The tag points to another digest.
    Other(Digest),
}

/// The deliveries of `lock` without items of the kinds in `skipped`, in the lock's order.
pub(super) fn deliveries(
    lock: &Lock,
    mapping: &DestinationMap,
    skipped: &BTreeSet<EntryKind>,
) -> Vec<Delivery> {
    let items = lock.items().enumerate();
    let items = items.filter(|(_, item)| !skipped.contains(&item.kind()));
    let deliveries = items.flat_map(|(entry, item)| {
        let tag = item.tag();
        item.destinations(mapping)
            .into_iter()
            .map(move |destination| Delivery {
                entry,
                destination,
                tag: tag.clone(),
            })
    });
    deliveries.collect()
}

/// The deliveries that belong to this shard. All deliveries to a repository belong to one shard, so
/// that blobs that several of them contain are uploaded once.
pub(super) fn own_deliveries(all: Vec<Delivery>, lock: &Lock, shard: Shard) -> Vec<Delivery> {
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
        let costs = blobs.entry(&delivery.destination.repository).or_default();
        costs.extend(parts.map(|blob| (blob.digest, transfer_cost(blob.size))));
    }
    let costs = blobs
        .into_iter()
        .map(|(repository, blobs)| (repository.to_owned(), sum_sizes(blobs.into_values())));
    let own = shard.own(costs.collect::<Vec<_>>());
    all.into_iter()
        .filter(|delivery| own.contains(&delivery.destination.repository))
        .collect()
}

/// Sorts the deliveries of `todo` by the largest blob that no earlier delivery uploads, so that a
/// run does not wait at its end for a large upload that began late.
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

/// The content that is looked up at the registry.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupScope {
    /// Whether every manifest and blob of an item with the right tag is looked up.
    pub(super) parts: bool,
    /// Whether the account writes to the registry later in the run. Then a tag for which the
    /// registry answers 403 counts as absent.
    pub(super) writes: bool,
}

/// Looks up the state of each destination tag.
pub(super) async fn look_up_tags(
    session: &RegistrySession,
    lock: &Lock,
    deliveries: &[Delivery],
    jobs: usize,
    scope: LookupScope,
) -> Vec<Result<TagState, HttpError>> {
    let presence = Presence::new(session, true);
    let attestations = listed_attestations(lock);
    let lookups = run_concurrently(deliveries.len(), jobs, async |at: usize| {
        let delivery = &deliveries[at];
        let entry = &lock.entry(delivery.entry);
        let repository = &delivery.destination.repository;
        // a registry has nothing under an invalid name; the preflight reports the name
        if names::fault(&delivery.destination).is_some() {
            return Ok(TagState::Nothing);
        }
        let found = session
            .head_manifest(repository, &delivery.tag, scope.writes)
            .await?;
        let Some(digest) = found else {
            return Ok(TagState::Nothing);
        };
        let is_trimmed = entry
            .trimmed()
            .is_some_and(|part| part.descriptor.digest == digest);
        let tag_state = if digest == entry.top.digest {
            TagState::Whole
        } else if is_trimmed {
            TagState::Trimmed
        } else {
            return Ok(TagState::Other(digest));
        };
        // referrers are not part of the image, so its digest says nothing about them
        let mut has_referrers = has_all_referrers(session, entry, repository, scope.writes).await?;
        // a registry that accepts missing children may have the index without an attestation
        if !scope.parts
            && let Some(listed) = attestations.get(&entry.top.digest)
            && presence.lacks_any(entry, repository, listed).await?
        {
            return Ok(TagState::Bare);
        }
        if scope.parts {
            match missing_parts(&presence, entry, delivery).await? {
                Some(missing) if missing.iter().all(|part| entry.is_of_referrers(part)) => {
                    has_referrers &= missing.is_empty();
                }
                _ => return Ok(TagState::Bare),
            }
        }
        if !has_referrers {
            return Ok(TagState::Unattached(digest));
        }
        Ok(tag_state)
    });
    lookups.await
}

/// The attestations that the indexes of images list, by the digest of the index. Their platform is
/// unknown.
fn listed_attestations(lock: &Lock) -> HashMap<&Digest, Vec<&Digest>> {
    let mut attestations: HashMap<&Digest, Vec<&Digest>> = HashMap::new();
    for image in &lock.images {
        let is_unknown = |platform: &String| platform.split('/').any(|part| part == "unknown");
        let children = image.manifests.iter();
        let children = children.filter(|child| child.platform.as_ref().is_some_and(is_unknown));
        for child in children {
            let listed = attestations.entry(&image.digest).or_default();
            listed.push(&child.digest);
        }
    }
    attestations
}

/// The manifests and blobs of the entry that the repository lacks. If the registry answers a
/// look-up with a 4xx status that has no [`ErrorKind`] of its own, such as 405, returns `None`, and
/// the entry is delivered again.
async fn missing_parts<'e>(
    presence: &Presence<'_>,
    entry: &'e LockEntry,
    delivery: &Delivery,
) -> Result<Option<Vec<&'e Digest>>, HttpError> {
    match presence
        .missing(entry, &delivery.destination.repository)
        .await
    {
        Err(error) if matches!(error.kind, ErrorKind::Status(400..500)) => Ok(None),
        missing => missing.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_belongs_to_one_shard_and_each_delivery_is_made_once() {
        let image = |name: &str, tag: &str, size: u64| {
            let own = Digest::sha256(format!("{name}{tag}").as_bytes());
            let layer = Digest::sha256(name.as_bytes());
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
        let all = deliveries(
            &lock,
            &DestinationMap::to("far.test".parse().unwrap()),
            &BTreeSet::new(),
        );
        for count in [1, 2, 3, 7] {
            let mut delivered = Vec::new();
            let mut shards = BTreeMap::new();
            for number in 1..=count {
                let shard = Shard::new(number, count).unwrap();
                for delivery in own_deliveries(all.clone(), &lock, shard) {
                    let first = *shards
                        .entry(delivery.destination.repository)
                        .or_insert(number);
                    assert_eq!(first, number, "a repository belongs to one shard");
                    delivered.push(delivery.entry);
                }
            }
            delivered.sort_unstable();
            assert_eq!(delivered, (0..all.len()).collect::<Vec<_>>(), "{count}");
            assert_eq!(
                shards.values().collect::<HashSet<_>>().len(),
                count.min(names.len()),
                "no shard is empty, unless there are fewer repositories than shards"
            );
        }
    }

    #[test]
    fn the_delivery_that_uploads_the_largest_blob_begins_first() {
        let digest = |text: &str| Digest::sha256(text.as_bytes());
        // two images on each of two bases, and one without a base
        let images = [
            ("a", "base", 40),
            ("b", "base", 40),
            ("c", "other", 90),
            ("d", "other", 90),
            ("e", "own", 50),
        ];
        let image = |(name, layer, size): (&str, &str, u64)| {
            let own = digest(name);
            let layer = digest(layer);
            format!(
                "- name: r.test/{name}:v1\n  digest: {own}\n  mediaType: m\n  size: 9\n  blobs:\n  - {layer} {size} l\n"
            )
        };
        let text: String = images.into_iter().map(image).collect();
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{text}")).unwrap();
        let deliveries = deliveries(
            &lock,
            &DestinationMap::to("far.test".parse().unwrap()),
            &BTreeSet::new(),
        );
        let order = biggest_first(&lock, &deliveries, (0..images.len()).collect());
        let names: Vec<&str> = order.into_iter().map(|at| images[at].0).collect();
        assert_eq!(names, ["c", "e", "a", "b", "d"]);
    }
}
