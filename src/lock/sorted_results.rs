//! The outcomes of the requests of a `lock` run.

use super::change::LockChange;
use landfall_item::lockfile::{
    AcceptedLoss, Lock, UnresolvedItem, lost_referrer_item, lost_referrer_name,
};
use landfall_item::manifest::MergedManifest;
use landfall_item::{ItemKind, LockedPackageSet, LostReferrer, ResolveOutcome};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Digest, today};
use std::collections::{BTreeMap, HashSet};

/// The results, sorted into items of the report, losses and changes.
pub(super) struct SortedResults<'a> {
    pub(super) accepted: BTreeMap<&'a str, &'a AcceptedLoss>,
    pub(super) items: Vec<ReportItem>,
    pub(super) missing: Vec<AcceptedLoss>,
    pub(super) unresolved: Vec<UnresolvedItem>,
    pub(super) gone: Vec<LockChange>,
}

impl<'a> SortedResults<'a> {
    pub(super) fn new(manifest: &'a MergedManifest) -> SortedResults<'a> {
        let accepted = manifest
            .missing
            .iter()
            .map(|lost| (lost.name.as_str(), lost))
            .collect();
        SortedResults {
            accepted,
            items: Vec::new(),
            missing: Vec::new(),
            unresolved: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Removes the outcome of a request that is resolved again.
    pub(super) fn forget(&mut self, kind: EntryKind, name: &str) {
        self.items
            .retain(|item| item.kind != kind || item.name != name);
        self.unresolved
            .retain(|item| item.kind != kind || item.name != name);
        self.missing.retain(|item| item.name != name);
        self.gone
            .retain(|change| change.kind != kind || change.name != name);
    }

    /// Records the referrers of the item `name` that could not be read.
    pub(super) fn add_lost_referrers(&mut self, name: &str, lost: Vec<LostReferrer>) {
        for LostReferrer { reference, cause } in lost {
            self.add_lost_referrer(
                lost_referrer_name(name, &reference),
                cause.message,
                cause.recorded,
            );
        }
    }

    /// Records the referrers of the item `name` that the old lock lists as lost.
    pub(super) fn keep_lost_referrers(&mut self, name: &str, old: &Lock) {
        for (item, lost) in old.lost_referrers() {
            if item == name {
                self.add_lost_referrer(lost.name.clone(), lost.cause.clone(), lost.cause.clone());
            }
        }
    }

    fn add_lost_referrer(&mut self, name: String, reason: String, cause: String) {
        self.items.push(ReportItem {
            kind: EntryKind::Referrer,
            name: name.clone(),
            digest: None,
            bytes: None,
            packages: 0,
            status: ItemStatus::Missing,
            reason: Some(reason),
        });
        self.unresolved.push(UnresolvedItem {
            kind: EntryKind::Referrer,
            name,
            cause,
        });
    }

    /// Removes the lost referrers of items that `lock` does not have.
    pub(super) fn drop_referrers_of_others(&mut self, lock: &Lock) {
        let names: HashSet<String> = lock.items().map(|item| item.name().into_owned()).collect();
        let is_of_lock = |kind, name: &str| {
            kind != EntryKind::Referrer
                || lost_referrer_item(name).is_some_and(|item| names.contains(item))
        };
        self.items.retain(|item| is_of_lock(item.kind, &item.name));
        self.unresolved
            .retain(|item| is_of_lock(item.kind, &item.name));
    }

    /// Records the outcome of the request called `name` and returns the item that the lock keeps.
    pub(super) fn add<K: ItemKind>(&mut self, name: &str, found: ResolveOutcome<K>) -> Option<K> {
        let kind = K::KIND;
        let mut packages = 0;
        if let ResolveOutcome::Kept(value)
        | ResolveOutcome::New(value)
        | ResolveOutcome::Gone(value)
        | ResolveOutcome::Failed(Some(value), _) = &found
        {
            packages = value.as_package_set().map_or(0, distinct_packages);
        }
        let mut push = |status, digest: Option<&Digest>, reason| {
            self.items.push(ReportItem {
                kind,
                name: name.into(),
                digest: digest.cloned(),
                bytes: None,
                packages,
                status,
                reason,
            });
        };
        match found {
            ResolveOutcome::Kept(item) => {
                push(ItemStatus::Present, Some(item.digest()), None);
                Some(item)
            }
            ResolveOutcome::New(item) => {
                push(ItemStatus::Done, Some(item.digest()), None);
                Some(item)
            }
            ResolveOutcome::Gone(old) => {
                let reason = "upstream does not have it any more; the old pin is kept";
                push(ItemStatus::Failed, Some(old.digest()), Some(reason.into()));
                self.gone.push(LockChange {
                    from: Some(old.digest().clone()),
                    ..LockChange::new(kind, name, "gone")
                });
                Some(old)
            }
            ResolveOutcome::Failed(Some(old), cause) => {
                let reason = format!("{}; the old pin is kept", cause.message);
                push(ItemStatus::Failed, Some(old.digest()), Some(reason));
                Some(old)
            }
            ResolveOutcome::Failed(None, cause) => {
                match self.accepted.get(name) {
                    Some(accepted) if cause.is_gone => {
                        // dates are written as YYYY-MM-DD, so their texts have the same order
                        let is_expired = accepted.until < today().to_string();
                        let status = if is_expired {
                            ItemStatus::Missing
                        } else {
                            ItemStatus::Skipped
                        };
                        let reason = format!(
                            "{} (accepted until {}): {}",
                            accepted.reason, accepted.until, cause.message
                        );
                        push(status, None, Some(reason));
                        self.missing.push((*accepted).clone());
                    }
                    accepted => {
                        // a network failure must not turn into an accepted loss
                        let rule = match accepted {
                            Some(_) => {
                                "; `missing:` applies only to items that upstream reports as not \
                                 found"
                            }
                            None => "",
                        };
                        push(ItemStatus::Missing, None, Some(cause.message + rule));
                        // the lock must be the same on every machine: see `ResolveError`
                        self.unresolved.push(UnresolvedItem {
                            kind,
                            name: name.into(),
                            cause: cause.recorded,
                        });
                    }
                }
                None
            }
        }
    }
}

/// The number of packages in `set`. A package that several sources contain counts once.
fn distinct_packages(set: &LockedPackageSet) -> usize {
    let digests: HashSet<_> = set
        .packages()
        .iter()
        .map(|package| package.digest)
        .collect();
    digests.len()
}
