//! Finds two locked items that would have the same name at the destination.

use super::document::Lock;
use crate::LockedItem;
use landfall_model::{DestinationMap, Digest};
use std::collections::BTreeMap;

/// Two items with different digests that would have the same name at the destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} would be two things: {first} ({first_digest}) and {second} ({second_digest}); give \
     one of \
     them a path of its own in the site file, under registry.paths:\n    {fix}"
)]
pub struct Collision {
    /// The destination that both have, as `registry/repository:tag`.
    pub place: String,
    /// The name of the first item in the lock.
    pub first: String,
    /// The digest of the first item.
    pub first_digest: Digest,
    /// The name of the second item in the lock.
    pub second: String,
    /// The digest of the second item.
    pub second_digest: Digest,
    /// The line that resolves the collision if it is added to the site.
    pub fix: String,
}

/// The first two items of `lock` that would have the same name but have different digests.
pub fn collision(mapping: &DestinationMap, lock: &Lock) -> Option<Collision> {
    let mut taken: BTreeMap<String, (&dyn LockedItem, &Digest)> = BTreeMap::new();
    for item in lock.items() {
        let own = item.tag();
        for place in item.destinations(mapping) {
            let referrers = item.referrer_tags();
            for (tag, digest) in referrers.into_iter().chain([(&*own, item.digest())]) {
                let place = format!("{place}:{tag}");
                // two tags of one image share its signatures, whose tags contain the digest
                let is_same = |first: &&(&dyn LockedItem, &Digest)| {
                    first.1 == digest || (tag != own && first.0.source() == item.source())
                };
                match taken.get(&place).filter(|first| !is_same(first)) {
                    Some(first) => return Some(Collision::new(place, *first, (item, digest))),
                    None => drop(taken.entry(place).or_insert((item, digest))),
                }
            }
        }
    }
    None
}

impl Collision {
    fn new(
        place: String,
        first: (&dyn LockedItem, &Digest),
        second: (&dyn LockedItem, &Digest),
    ) -> Collision {
        let source = second.0.source();
        // a signature has no name in the lock, so it is shown with its image
        let name = |(item, digest): (&dyn LockedItem, &Digest)| {
            if item.digest() == digest {
                item.name().into_owned()
            } else {
                format!("what refers to {}", item.name())
            }
        };
        Collision {
            place,
            first: name(first),
            first_digest: first.1.clone(),
            second: name(second),
            second_digest: second.1.clone(),
            fix: format!("{source}: {}", source.replace(':', "_")),
        }
    }
}
