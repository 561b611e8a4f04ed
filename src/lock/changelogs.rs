//! What packages say of the versions that an update brings, where their files are at hand.

use super::change::LockChange;
use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_item::{LockedPackageSet, PackageSummary};
use landfall_model::Digest;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Adds the first lines of its changelog to each package that went up, or moved within its version,
/// as far as `content` has its file. Returns why which of them could not be read, a sentence each.
pub(crate) fn add_changelogs(
    changes: &mut [LockChange],
    new: &Lock,
    content: &dyn BlobRead,
) -> Vec<String> {
    let packages = changes.iter_mut().flat_map(|change| &mut change.packages);
    let packages: Vec<_> = packages
        .filter(|package| ["up", "moved"].contains(&package.change))
        .collect();
    if packages.is_empty() {
        return Vec::new();
    }
    let forms: HashMap<&Digest, PackageSummary<'_>> = new
        .packages
        .iter()
        .flat_map(LockedPackageSet::packages)
        .map(|form| (form.digest, form))
        .collect();
    // a file is unpacked up to its changelog, so all processors are of use
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(packages.len());
    let left = Mutex::new(packages.into_iter());
    let faults = Mutex::new(Vec::new());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(package) = next() {
                    let Some(form) = forms.get(&package.digest) else {
                        continue;
                    };
                    match form.changelog(content) {
                        Ok(lines) => package.changelog = lines,
                        Err(error) => {
                            let fault = format!(
                                "the changelog of {} {} cannot be read: {error}",
                                form.name, form.version
                            );
                            faults
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push(fault);
                        }
                    }
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    faults.sort();
    faults
}
