//! Finds two locked items that would get one name at the destination.

use super::document::Lock;
use crate::item::LockedItem;
use crate::model::{Digest, Mapping};
use std::collections::BTreeMap;

/// Two digests that would get one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} would be two things: {first} ({first_digest}) and {second} ({second_digest}); give one of \
     them a path of its own in the site file, under registry.paths:\n    {fix}"
)]
pub struct Collision {
    /// `registry/repository:tag` at the destination.
    pub place: String,
    /// One locked name.
    pub first: String,
    /// Its digest.
    pub first_digest: Digest,
    /// The other locked name.
    pub second: String,
    /// Its digest.
    pub second_digest: Digest,
    /// The line to add.
    pub fix: String,
}

/// The first two items of `lock` that would get one name but have different digests.
pub(crate) fn collision(mapping: &Mapping, lock: &Lock) -> Option<Collision> {
    let mut taken: BTreeMap<String, &dyn LockedItem> = BTreeMap::new();
    for item in lock.items() {
        let tag = item.tag();
        for place in item.destinations(mapping) {
            let place = format!("{place}:{tag}");
            match taken.get(&place) {
                Some(first) if first.digest() != item.digest() => {
                    let source = item.source();
                    return Some(Collision {
                        place,
                        first: first.name().into_owned(),
                        first_digest: first.digest().clone(),
                        second: item.name().into_owned(),
                        second_digest: item.digest().clone(),
                        fix: format!("{source}: {}", source.replace(':', "_")),
                    });
                }
                Some(_) => {}
                None => {
                    taken.insert(place, item);
                }
            }
        }
    }
    None
}
