//! Writes manifests and the lock, unless they were edited meanwhile.

use super::{Client, ClientError};
use crate::lock::Locked;
use crate::update::{ChangedSights, FirstSights, UpdateOutcome};
use landfall_content::store::DiskStore;
use landfall_content::{ReplaceError, check_unchanged, create_file, merge_into_file, replace_file};
use landfall_item::lockfile::Lock;
use landfall_model::Digest;
use landfall_model::report::RunReport;
use std::path::Path;

/// The lock file as it was before anything was resolved.
pub(crate) struct PreviousLock {
    pub(crate) lock: Lock,
    /// The digest of the file. If the file has another digest when the new lock is written, it was
    /// edited, and is left unchanged.
    file: Digest,
}

/// Whether the lock file has the new lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockFileState {
    /// It was written.
    Written,
    /// It had this lock already.
    Unchanged,
    /// Nothing could be resolved, so the file has another lock, or does not exist.
    Kept,
}

impl PreviousLock {
    /// Wraps a lock that was read from a file with these bytes.
    pub(crate) fn new(lock: Lock, bytes: &[u8]) -> PreviousLock {
        PreviousLock {
            lock,
            file: Digest::sha256(bytes),
        }
    }
}

impl Client {
    /// Writes `landfall.lock.seen`, then the manifests and lists that an update changes, each
    /// atomically. A manifest that was edited since the update read it is an error.
    pub(crate) fn write_manifests(&self, updated: &UpdateOutcome) -> Result<(), ClientError> {
        // first: a run that is killed later must not lose the times when versions were first seen
        if let Some(sights) = &updated.ages.sights {
            self.write_sights(&updated.sights_path, sights)?;
        }
        for (path, text) in &updated.edited {
            let is_read = |now: &[u8]| updated.before.get(path) == Some(&Digest::sha256(now));
            let lost = replace_file(path, is_read, text.as_bytes()).map_err(|source| {
                ClientError::WriteDocument {
                    path: path.clone(),
                    source,
                }
            })?;
            self.note_lost(path, &lost);
        }
        Ok(())
    }

    /// Writes the first sights to the file `path`. Keeps those that another run wrote meanwhile.
    fn write_sights(&self, path: &Path, changed: &ChangedSights) -> Result<(), ClientError> {
        let result = merge_into_file(path, |present| {
            let Some(present) = present else {
                return Ok(changed.after.to_text());
            };
            // the file was valid when this run began
            let present = FirstSights::parse(&String::from_utf8_lossy(present))
                .map_err(|_| ReplaceError::Changed)?;
            Ok(changed.merged_with(&present).to_text())
        });
        let lost = result.map_err(|source| ClientError::WriteDocument {
            path: path.into(),
            source,
        })?;
        self.note_lost(path, &lost);
        Ok(())
    }

    /// Replaces the previous lock by `lock`. Returns whether the file changed. A file that was
    /// edited since the previous lock was read is an error, even if `lock` is the previous lock.
    pub(crate) fn write_lock(
        &self,
        previous: Option<&PreviousLock>,
        path: &Path,
        lock: &Lock,
    ) -> Result<bool, ClientError> {
        let text = lock.to_text();
        // the content is compared, not the bytes of the file
        let is_new = previous.is_none_or(|previous| previous.lock.to_text() != text);
        let written = match previous {
            Some(previous) => {
                let is_read = |now: &[u8]| Digest::sha256(now) == previous.file;
                if is_new {
                    replace_file(path, is_read, text.as_bytes())
                } else {
                    // another lock would be reported, and packed, as the one in the file
                    check_unchanged(path, is_read).map(|()| Vec::new())
                }
            }
            None => create_file(path, text.as_bytes()).map(|()| Vec::new()),
        };
        let lost = written.map_err(|source| ClientError::WriteDocument {
            path: path.into(),
            source,
        })?;
        self.note_lost(path, &lost);
        Ok(is_new)
    }

    /// Locks the manifests after an update, and writes the lock. With `referrers`, signatures and
    /// other referrers are looked up again.
    pub(crate) async fn lock_and_write(
        &self,
        updated: &UpdateOutcome,
        previous: Option<&PreviousLock>,
        path: &Path,
        referrers: bool,
        store: &DiskStore,
    ) -> Result<(Locked, LockFileState), ClientError> {
        let old = previous.map(|previous| &previous.lock);
        let locked = self.lock_updated(updated, old, referrers, store).await;
        let report = RunReport {
            items: locked.items.clone(),
            ..RunReport::default()
        };
        // If nothing resolves, as without a network, an empty lock would replace a good one.
        let all_failed = report.has_losses() && !report.has_successes();
        let state = if all_failed && old.is_none_or(|old| old.to_text() != locked.lock.to_text()) {
            LockFileState::Kept
        } else if !all_failed && self.write_lock(previous, path, &locked.lock)? {
            LockFileState::Written
        } else {
            LockFileState::Unchanged
        };
        Ok((locked, state))
    }

    /// Reports attributes of a file that could not be kept, such as an owner or an access control
    /// list.
    fn note_lost(&self, path: &Path, lost: &[String]) {
        for lost in lost {
            self.progress
                .note(&format!("{}: lost {lost}", path.display()));
        }
    }
}
