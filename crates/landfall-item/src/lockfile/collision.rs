//! Finds two locked items that would have the same name at the destination.

use super::document::Lock;
use crate::LockedItem;
use landfall_model::{DestinationMap, Digest};
use std::collections::BTreeMap;

/// Two items, or referrers of items, with different digests that would have the same name at the
/// destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} would be both {first} ({first_digest}) and {second} ({second_digest}); give one of \
     them a path of its own in the site file, under registry.paths:\n    {fix}"
)]
pub struct Collision {
    /// The destination that both have, as `registry/repository:tag`.
    pub place: String,
    /// The name of the first item in the lock; `a referrer of NAME` for a referrer of the item.
    pub first: String,
    /// The digest of the first item or referrer.
    pub first_digest: Digest,
    /// The name of the second item in the lock; `a referrer of NAME` for a referrer of the item.
    pub second: String,
    /// The digest of the second item or referrer.
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
                match taken.get(&place) {
                    Some(&(first, first_digest)) => {
                        // two tags of one image share its signatures: the tag of a signature
                        // contains the digest of the image
                        let is_shared_referrer = tag != own && first.source() == item.source();
                        if first_digest != digest && !is_shared_referrer {
                            let first = (first, first_digest);
                            return Some(Collision::new(place, first, (item, digest)));
                        }
                    }
                    None => drop(taken.insert(place, (item, digest))),
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
        Collision {
            place,
            first: name_of(first.0, first.1),
            first_digest: first.1.clone(),
            second: name_of(second.0, second.1),
            second_digest: second.1.clone(),
            // the source host as the first path component keeps the two apart
            fix: format!("{source}: {}", source.replace(':', "_")),
        }
    }
}

/// The name of `item` if `digest` is its digest. Otherwise, `digest` is that of a referrer, which
/// has no name in the lock.
fn name_of(item: &dyn LockedItem, digest: &Digest) -> String {
    if item.digest() == digest {
        item.name().into_owned()
    } else {
        format!("a referrer of {}", item.name())
    }
}
