//! Adds changelogs of packages to a comparison of locks, if their files are available.

use super::change::LockChange;
use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_item::{LockedPackageSet, PackageSummary};
use landfall_model::{Digest, locked};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Adds the first lines of the changelog to each package that has a newer version, or another
/// digest for the same version. Packages whose files are not in `content` are skipped. Returns a
/// message for each changelog that could not be read.
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
    let by_digest: HashMap<&Digest, PackageSummary<'_>> = new
        .packages
        .iter()
        .flat_map(LockedPackageSet::packages)
        .map(|summary| (summary.digest, summary))
        .collect();
    // A package is unpacked up to its changelog, which takes CPU time, so all processors work.
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(packages.len());
    let queue = Mutex::new(packages.into_iter());
    let faults = Mutex::new(Vec::new());
    let next = || locked(&queue).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(package) = next() {
                    let Some(summary) = by_digest.get(&package.digest) else {
                        continue;
                    };
                    match summary.changelog(content) {
                        Ok(lines) => package.changelog = lines,
                        Err(error) => {
                            let fault = format!(
                                "the changelog of {} {} cannot be read: {error}",
                                summary.name, summary.version
                            );
                            locked(&faults).push(fault);
                        }
                    }
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    // the threads finish in any order, and the report must be the same each time
    faults.sort();
    faults
}
