//! Compares two locks, or what is known of them.

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

/// What is known of one item.
struct DiffItem<'a> {
    digest: &'a Digest,
    /// The item, where a lock has it.
    item: Option<&'a dyn LockedItem>,
}

impl<'a> DiffSide<'a> {
    /// What a lock has.
    pub(crate) fn lock(lock: &'a Lock) -> DiffSide<'a> {
        let held = |item: &'a dyn LockedItem| DiffItem {
            digest: item.digest(),
            item: Some(item),
        };
        DiffSide(
            lock.items()
                .map(|item| ((item.kind(), item.name()), held(item)))
                .collect(),
        )
    }

    /// Items of which only name and digest are known, as of those that a receipt has.
    pub(crate) fn named(items: impl IntoIterator<Item = (&'a str, &'a Digest)>) -> DiffSide<'a> {
        let held = |digest| DiffItem { digest, item: None };
        let items = items.into_iter();
        DiffSide(
            items
                .map(|(name, digest)| ((kind_named(name), name.into()), held(digest)))
                .collect(),
        )
    }
}

/// How `new` differs from `old`.
pub(crate) fn diff(old: &Lock, new: &Lock) -> Vec<LockChange> {
    diff_sides(&DiffSide::lock(old), &DiffSide::lock(new))
}

/// How `new` differs from `old`, as far as both sides know. Changed parts and referrers show where
/// both are locks.
pub(crate) fn diff_sides(
    DiffSide(old): &DiffSide<'_>,
    DiffSide(new): &DiffSide<'_>,
) -> Vec<LockChange> {
    let mut changes = Vec::new();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in names {
        let (before, after) = (old.get(key), new.get(key));
        let items = (
            before.and_then(|held| held.item),
            after.and_then(|held| held.item),
        );
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(a), Some(b)) if a.digest != b.digest => "moved",
            (Some(_), Some(_)) if matches!(items, (Some(a), Some(b)) if text(a) != text(b)) => {
                "changed"
            }
            _ => continue,
        };
        // of what only a receipt has nobody knows the referrers
        let is_known = before.is_none_or(|held| held.item.is_some())
            && after.is_none_or(|held| held.item.is_some());
        let (had, has) = if is_known {
            (referrers(items.0), referrers(items.1))
        } else {
            Default::default()
        };
        changes.push(LockChange {
            from: before.map(|held| held.digest.clone()),
            to: after.map(|held| held.digest.clone()),
            new_referrers: has.difference(&had).cloned().collect(),
            gone_referrers: had.difference(&has).cloned().collect(),
            packages: match items {
                (Some(before), Some(after)) => packages::differences(before, after),
                _ => Vec::new(),
            },
            ..LockChange::of(key.0, &key.1, change)
        });
    }
    versions::pair(&mut changes);
    changes
}

/// An endpoint that only one of two locks has, or that has other reasons or roles in the newer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointChange {
    /// `added`, `removed`, or `changed`.
    pub change: &'static str,
    /// The endpoint of the newer lock that has it.
    #[serde(flatten)]
    pub endpoint: Endpoint,
}

/// How the endpoints of `new` differ from those of `old`.
pub(crate) fn diff_endpoints(old: &Lock, new: &Lock) -> Vec<EndpointChange> {
    let by_address = |lock: &'_ Lock| -> BTreeMap<(String, u16), Endpoint> {
        lock.endpoints
            .iter()
            .map(|one| ((one.host.clone(), one.port), one.clone()))
            .collect()
    };
    let (mut old, new) = (by_address(old), by_address(new));
    let mut changes = Vec::new();
    for (address, endpoint) in new {
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

/// Its text in the lock.
fn text(item: &dyn LockedItem) -> String {
    let mut text = String::new();
    // a String takes everything
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
