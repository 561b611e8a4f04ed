//! Compares two locks, or a lock with the names and digests in a receipt.

use super::change::LockChange;
use super::{packages, versions};
use landfall_item::lockfile::{Endpoint, Lock};
use landfall_item::{LockedItem, kind_named};
use landfall_model::Digest;
use landfall_model::report::EntryKind;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One side of a comparison: items by kind and name.
pub(crate) struct DiffSide<'a>(BTreeMap<(EntryKind, Cow<'a, str>), DiffItem<'a>>);

struct DiffItem<'a> {
    digest: &'a Digest,
    /// The locked item; `None` if only its digest is known.
    item: Option<&'a dyn LockedItem>,
}

impl<'a> DiffSide<'a> {
    /// The items of a lock.
    pub(crate) fn lock(lock: &'a Lock) -> DiffSide<'a> {
        let items = lock.items().map(|item| {
            let value = DiffItem {
                digest: item.digest(),
                item: Some(item),
            };
            ((item.kind(), item.name()), value)
        });
        DiffSide(items.collect())
    }

    /// Items of which only name and digest are known, such as those in a receipt.
    pub(crate) fn named(items: impl IntoIterator<Item = (&'a str, &'a Digest)>) -> DiffSide<'a> {
        let items = items.into_iter().map(|(name, digest)| {
            let value = DiffItem { digest, item: None };
            ((kind_named(name), name.into()), value)
        });
        DiffSide(items.collect())
    }
}

/// Returns the differences between two locks, sorted by kind and name.
pub(crate) fn diff(old: &Lock, new: &Lock) -> Vec<LockChange> {
    diff_sides(&DiffSide::lock(old), &DiffSide::lock(new))
}

/// Returns the differences between two sides, sorted by kind and name. For an item that both sides
/// have, differences in parts and referrers are found only if both sides are locks.
pub(crate) fn diff_sides(
    DiffSide(old): &DiffSide<'_>,
    DiffSide(new): &DiffSide<'_>,
) -> Vec<LockChange> {
    let mut changes = Vec::new();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in names {
        let before = old.get(key);
        let after = new.get(key);
        let items = (
            before.and_then(|held| held.item),
            after.and_then(|held| held.item),
        );
        let is_changed = matches!(items, (Some(a), Some(b)) if lock_text(a) != lock_text(b));
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(a), Some(b)) if a.digest != b.digest => "moved",
            (Some(_), Some(_)) if is_changed => "changed",
            _ => continue,
        };
        // A receipt lists no referrers, so every referrer of the other side would look new or gone.
        let has_referrers = before.is_none_or(|held| held.item.is_some())
            && after.is_none_or(|held| held.item.is_some());
        let (old_referrers, new_referrers) = if has_referrers {
            (referrers(items.0), referrers(items.1))
        } else {
            Default::default()
        };
        changes.push(LockChange {
            from: before.map(|held| held.digest.clone()),
            to: after.map(|held| held.digest.clone()),
            new_referrers: new_referrers.difference(&old_referrers).cloned().collect(),
            gone_referrers: old_referrers.difference(&new_referrers).cloned().collect(),
            packages: match items {
                (Some(before), Some(after)) => packages::differences(before, after),
                _ => Vec::new(),
            },
            ..LockChange::new(key.0, &key.1, change)
        });
    }
    versions::pair(&mut changes);
    changes
}

/// An endpoint that only one of two locks has, or whose reasons or roles differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointChange {
    /// `added`, `removed`, or `changed`.
    pub change: &'static str,
    /// The endpoint as the new lock has it; a removed one as the old lock has it.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

/// Returns the differences between the endpoints of two locks, sorted.
pub(crate) fn diff_endpoints(old: &Lock, new: &Lock) -> Vec<EndpointChange> {
    let mut old = endpoints_by_address(old);
    let mut changes = Vec::new();
    for (address, endpoint) in endpoints_by_address(new) {
        let change = match old.remove(&address) {
            None => "added",
            Some(before) if before != endpoint => "changed",
            Some(_) => continue,
        };
        changes.push(EndpointChange { change, endpoint });
    }
    changes.extend(old.into_values().map(|endpoint| EndpointChange {
        change: "removed",
        endpoint,
    }));
    changes.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    changes
}

fn endpoints_by_address(lock: &Lock) -> BTreeMap<(String, u16), Endpoint> {
    lock.endpoints
        .iter()
        .map(|one| ((one.host.clone(), one.port), one.clone()))
        .collect()
}

/// The text of an item in the lock file, which contains all its parts.
fn lock_text(item: &dyn LockedItem) -> String {
    let mut text = String::new();
    // writing to a String cannot fail
    let _ = item.write(&mut text);
    text
}

fn referrers(item: Option<&dyn LockedItem>) -> BTreeSet<Digest> {
    let referrers = item.map(|item| item.entry().referrers).unwrap_or_default();
    referrers
        .into_iter()
        .map(|referrer| referrer.descriptor.digest)
        .collect()
}
