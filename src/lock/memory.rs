//! What earlier runs on a store resolved. A mirror without a lock takes it where nothing moved.

use landfall_content::WriteError;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use std::collections::BTreeSet;

/// A lock in the store's own folder: every name that a mirror resolved, as it was resolved last.
const FILE: &str = ".landfall/resolved.lock";

/// What earlier runs on this store resolved. Nothing of it is trusted: an image of it counts where
/// upstream still has its digest and the store's manifests agree with it.
pub(crate) fn recall(disk: &DiskStore, progress: &dyn Progress) -> Lock {
    let path = disk.dir().join(FILE);
    if !path.exists() {
        return Lock::default();
    }
    Lock::load(&path).unwrap_or_else(|error| {
        progress.note(&format!("every name is resolved anew: {error}"));
        Lock::default()
    })
}

/// Keeps what `lock` resolved beside what `recalled` holds of other names.
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
    recalled.append(Lock {
        endpoints: Vec::new(),
        missing: Vec::new(),
        unresolved: Vec::new(),
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
