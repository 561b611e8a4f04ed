//! Resolves the items of manifests to digests, and updates versions by their policies.

use super::Client;
use crate::lock::{ChartImages, Locked, lock, recall, remember};
use crate::update::{ChangedSights, FirstSights, UpdateOutcome, UpdateRequest, update};
use landfall_content::archives::{ArchiveImages, read_image_names};
use landfall_content::store::DiskStore;
use landfall_content::{
    FileChanged, WriteError, check_unchanged, create_file, merge_into_file, replace_file,
};
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{self, FileOverrides, MergedManifest, load_edited};
use landfall_item::{PinPolicy, Resolver};
use landfall_model::report::{RunReport, count_of};
use landfall_model::{Digest, Failure};
use landfall_signature::SignaturePolicy;
use std::path::Path;
use std::sync::Arc;

impl Client {
    /// Resolves all items of the manifests to digests. `pins` says which pins of `old` are kept.
    /// `store` keeps downloaded manifests. Items that cannot be resolved are recorded in the lock.
    pub async fn lock(
        &self,
        manifest: &MergedManifest,
        old: Option<&Lock>,
        pins: PinPolicy,
        store: &DiskStore,
    ) -> Locked {
        self.lock_after(manifest, old, &UpdateOutcome::default(), pins, store)
            .await
    }

    /// Like [`Client::lock`], after an update. The items that `updated` replaces are resolved
    /// again, and keep their pins only if that fails. The digests that it looked up are locked.
    async fn lock_after(
        &self,
        manifest: &MergedManifest,
        old: Option<&Lock>,
        updated: &UpdateOutcome,
        pins: PinPolicy,
        store: &DiskStore,
    ) -> Locked {
        let mut resolver = self.resolver(store);
        resolver.signatures = self.signatures_for(manifest);
        resolver.image_finder = Some(Arc::new(ChartImages(self.limits)));
        resolver.archives = self.archive_images(store).await;
        resolver.lock_folder.clone_from(&self.lock_folder);
        resolver.looked_up = Arc::new(updated.looked_up.clone());
        resolver.set_git_tags(updated.git_tags.clone());
        // accounts of chart repositories are used only for the repositories that the manifests
        // name, not for the repositories of a chart's dependencies
        let charts = manifest.requests.charts.iter();
        resolver.named = charts.map(|chart| chart.name.repository_url()).collect();
        let locked = Box::pin(lock(manifest, old, &updated.relock, pins, &resolver)).await;
        // facts about repositories save requests in the next run, even if items failed
        resolver.remember();
        locked
    }

    /// A resolver that stores fetched content in `store`.
    pub(crate) fn resolver(&self, store: &DiskStore) -> Resolver {
        Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
    }

    /// The rules for signatures of items: those of `manifest` and those of the site.
    pub(crate) fn signatures_for(&self, manifest: &MergedManifest) -> SignaturePolicy {
        let mut signatures = manifest.signatures.clone();
        signatures.append(self.signatures.clone());
        signatures
    }

    /// Finds newer versions that the policies in manifests allow, and upstream changes of the items
    /// that keep their version. Writes only to `store`: downloaded manifests, and facts about
    /// repositories.
    pub(crate) async fn update(
        &self,
        request: &UpdateRequest<'_>,
        store: &DiskStore,
    ) -> Result<UpdateOutcome, manifest::LoadManifestError> {
        let manifest = load_edited(request.paths, request.platforms, &FileOverrides::new())?;
        let mut resolver = self.resolver(store);
        resolver.signatures = self.signatures_for(&manifest);
        let updated = Box::pin(update(request, &resolver)).await;
        resolver.remember();
        updated
    }

    /// Like [`Client::lock`] without an old lock, for a lock that is not kept. `store` remembers
    /// the resolved items: in the next run, no manifest is requested for an image whose tag did not
    /// change.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn resolve(
        &self,
        manifest: &MergedManifest,
        store: &DiskStore,
    ) -> Result<Locked, WriteError> {
        let recalled = recall(store, &*self.progress);
        let locked = self
            .lock(manifest, Some(&recalled), PinPolicy::Recall, store)
            .await;
        remember(store, recalled, &locked.lock)?;
        Ok(locked)
    }

    /// Reads the names and manifests of the images in the archives.
    async fn archive_images(&self, store: &DiskStore) -> Arc<ArchiveImages> {
        if self.archives.is_empty() {
            return Arc::default();
        }
        let archives = self.archives.clone();
        let store = store.dir().to_path_buf();
        let limits = self.limits;
        // reads whole archives, which would block the async runtime
        let reading = tokio::task::spawn_blocking(move || {
            let mut images = ArchiveImages::default();
            for archive in archives.iter() {
                // not an error: images whose manifests are not kept are requested from registries
                if let Err(error) = read_image_names(archive, &mut images, &store, &limits) {
                    images.skipped.push(format!(
                        "manifests and configs of an archive were not stored for pull: {error}"
                    ));
                }
            }
            images
        });
        let images = reading.await.unwrap_or_default();
        images
            .skipped
            .iter()
            .for_each(|line| self.progress.note(line));
        self.progress.tell(&format!(
            "the archives contain {}",
            count_of(images.count(), "image")
        ));
        Arc::new(images)
    }
}

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
    pub(crate) fn write_manifests(&self, updated: &UpdateOutcome) -> Result<(), Failure> {
        // first: a run that is killed later must not lose the times when versions were first seen
        if let Some(sights) = &updated.ages.sights {
            self.write_sights(&updated.sights_path, sights)?;
        }
        for (path, text) in &updated.edited {
            let is_read = |now: &[u8]| updated.before.get(path) == Some(&Digest::sha256(now));
            let lost = replace_file(path, is_read, text.as_bytes())
                .map_err(|error| Failure::write(path, error))?;
            self.note_lost(path, &lost);
        }
        Ok(())
    }

    /// Writes the first sights to the file `path`. Keeps those that another run wrote meanwhile.
    fn write_sights(&self, path: &Path, changed: &ChangedSights) -> Result<(), Failure> {
        let result = merge_into_file(path, |present| {
            let Some(present) = present else {
                return Ok(changed.after.to_text());
            };
            // the file was valid when this run began
            let present =
                FirstSights::parse(&String::from_utf8_lossy(present)).map_err(|_| FileChanged)?;
            Ok(changed.merged_with(&present).to_text())
        });
        let lost = result.map_err(|error| Failure::write(path, error))?;
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
    ) -> Result<bool, Failure> {
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
        let lost = written.map_err(|error| Failure::write(path, error))?;
        self.note_lost(path, &lost);
        Ok(is_new)
    }

    /// Locks the manifests after an update, and writes the lock. The update replaces some pins, and
    /// all others are kept. If the new digest of an item cannot be resolved, its old pin is kept if
    /// it meets the rules. With `referrers`, signatures and other referrers are looked up again.
    pub(crate) async fn lock_and_write(
        &self,
        updated: &UpdateOutcome,
        previous: Option<&PreviousLock>,
        path: &Path,
        referrers: bool,
        store: &DiskStore,
    ) -> Result<(Locked, LockFileState), Failure> {
        let old = previous.map(|previous| &previous.lock);
        let pins = if referrers {
            PinPolicy::Referrers
        } else {
            PinPolicy::Keep
        };
        // an update must not lose an item whose new version cannot be resolved
        let locked = self
            .lock_after(&updated.manifest, old, updated, pins, store)
            .await;
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
