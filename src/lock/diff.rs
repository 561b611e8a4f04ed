//! Compares two locks.

use crate::item::LockedItem;
use crate::lockfile::{Endpoint, Lock};
use crate::model::Digest;
use crate::report::Kind;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One difference between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What kind of item.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// `added`, `removed`, `moved` (another digest), `changed` (the same digest, other parts), or `gone`
    /// (upstream lacks it now; the old pin is kept).
    pub change: &'static str,
    /// The old digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    /// The new digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// Its new referrers.
    #[serde(rename = "newReferrers", skip_serializing_if = "Vec::is_empty")]
    pub new_referrers: Vec<Digest>,
    /// Referrers that it no longer has.
    #[serde(rename = "goneReferrers", skip_serializing_if = "Vec::is_empty")]
    pub gone_referrers: Vec<Digest>,
}

/// How `new` differs from `old`.
pub(crate) fn diff(old: &Lock, new: &Lock) -> Vec<Change> {
    let (old, new) = (by_name(old), by_name(new));
    let mut changes = Vec::new();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for key in names {
        let (before, after) = (old.get(key).copied(), new.get(key).copied());
        let change = match (before, after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(a), Some(b)) if a.digest() != b.digest() => "moved",
            (Some(a), Some(b)) if text(a) != text(b) => "changed",
            _ => continue,
        };
        let (had, has) = (referrers(before), referrers(after));
        changes.push(Change {
            kind: key.0,
            name: key.1.to_string(),
            change,
            from: before.map(|item| item.digest().clone()),
            to: after.map(|item| item.digest().clone()),
            new_referrers: has.difference(&had).cloned().collect(),
            gone_referrers: had.difference(&has).cloned().collect(),
        });
    }
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
        lock.endpoints.iter().map(|one| ((one.host.clone(), one.port), one.clone())).collect()
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
    changes.extend(old.into_values().map(|endpoint| EndpointChange { change: "removed", endpoint }));
    changes.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    changes
}

fn by_name(lock: &Lock) -> BTreeMap<(Kind, Cow<'_, str>), &dyn LockedItem> {
    lock.items().map(|item| ((item.kind(), item.name()), item)).collect()
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
    referrers.into_iter().map(|referrer| referrer.descriptor.digest).collect()
}
