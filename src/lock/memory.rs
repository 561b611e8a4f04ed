//! When `mirror` runs without a lock, saves the resolved items in the store, so that the next run
//! needs fewer requests.

use landfall_content::WriteError;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::{Lock, lost_referrer_item};
use landfall_model::report::Progress;
use std::collections::BTreeSet;

/// The path of the remembered lock, below the folder of the store.
const FILE: &str = ".landfall/resolved.lock";

/// Loads the items that earlier runs on this store resolved. The result is only a hint: an image in
/// it is used if upstream still has its digest and the manifests in the store agree with it.
pub(crate) fn recall(disk: &DiskStore, progress: &dyn Progress) -> Lock {
    let path = disk.dir().join(FILE);
    if !path.exists() {
        return Lock::default();
    }
    Lock::load(&path).unwrap_or_else(|error| {
        progress.note(&format!("every name is resolved again: {error}"));
        Lock::default()
    })
}

/// Saves the items of `lock`, and the items of `recalled` whose names `lock` lacks: runs with other
/// manifests may use the same store.
pub(crate) fn remember(
    disk: &DiskStore,
    mut recalled: Lock,
    lock: &Lock,
) -> Result<(), WriteError> {
    let new: BTreeSet<_> = lock
        .items()
        .map(|item| (item.kind(), item.name()))
        .collect();
    let before = recalled.to_text();
    recalled.retain(|item| !new.contains(&(item.kind(), item.name())));
    let items = lock.clone();
    // only resolved items save requests; the referrers that they lost are looked up again
    let kept: BTreeSet<String> = recalled
        .items()
        .map(|item| item.name().into_owned())
        .collect();
    recalled
        .unresolved
        .retain(|lost| lost_referrer_item(&lost.name).is_some_and(|item| kept.contains(item)));
    let unresolved = lock.lost_referrers().map(|(_, lost)| lost.clone());
    let unresolved = unresolved.collect();
    recalled.append(Lock {
        endpoints: Vec::new(),
        missing: Vec::new(),
        unresolved,
        ..items
    });
    recalled.version = lock.version;
    recalled.sort();
    let after = recalled.to_text();
    if after == before {
        Ok(())
    } else {
        disk.write(FILE, after.as_bytes())
    }
}
