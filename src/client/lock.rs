//! Resolves the items of manifests to digests, and updates versions by their policies.

use super::Client;
use crate::lock::{ChartImages, Locked, diff, lock, recall, remember};
use crate::update::{UpdateOutcome, UpdateRequest, update};
use landfall_content::WriteError;
use landfall_content::archives::{ArchiveImages, read_image_names};
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{self, FileOverrides, MergedManifest, load_edited};
use landfall_item::{PinPolicy, Resolver};
use landfall_model::report::count_of;
use landfall_signature::SignaturePolicy;
use std::collections::BTreeSet;
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
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .with_signatures(self.signatures_for(manifest))
            .finding_images(Arc::new(ChartImages(self.limits)))
            .with_archives(self.archive_images(store).await)
            // accounts of chart repositories are used only for the repositories that the
            // manifests name, not for the repositories of a chart's dependencies
            .with_accounts_for(
                manifest
                    .requests
                    .charts
                    .iter()
                    .map(|chart| chart.name.repository_url()),
            );
        let locked = lock(manifest, old, pins, &resolver).await;
        // facts about repositories save requests in the next run, even if items failed
        resolver.remember();
        locked
    }

    /// The rules for signatures of items: those of `manifest` and those of the site.
    fn signatures_for(&self, manifest: &MergedManifest) -> SignaturePolicy {
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
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .with_signatures(self.signatures_for(&manifest));
        let updated = update(request, &resolver).await;
        resolver.remember();
        updated
    }

    /// Locks the manifests after an update. The update replaces some pins, and all others are kept.
    /// If the new digest of an item cannot be resolved, its old pin is kept. With `referrers`,
    /// signatures and other referrers are looked up again.
    pub(crate) async fn lock_updated(
        &self,
        updated: &UpdateOutcome,
        old: Option<&Lock>,
        referrers: bool,
        store: &DiskStore,
    ) -> Locked {
        let pins = if referrers {
            PinPolicy::Referrers
        } else {
            PinPolicy::Keep
        };
        // Items that the update replaces are left out of the old lock, so that they are resolved
        // again.
        let is_moved = |kind, name: &str| updated.relock.contains(&(kind, name.to_owned()));
        let kept = old.map(|old| {
            let mut kept = old.clone();
            kept.retain(|item| !is_moved(item.kind(), &item.name()));
            kept
        });
        let mut locked = self
            .lock(&updated.manifest, kept.as_ref(), pins, store)
            .await;
        let Some(old) = old else { return locked };
        // If an item that the update replaces cannot be resolved, `lock` has no old pin to keep, so
        // the pin is restored here: an update must not lose an item.
        let unresolved: BTreeSet<_> = locked
            .lock
            .unresolved
            .iter()
            .map(|item| (item.kind, item.name.clone()))
            .collect();
        let mut restored = Lock {
            endpoints: Vec::new(),
            missing: Vec::new(),
            unresolved: Vec::new(),
            ..old.clone()
        };
        restored.retain(|item| {
            is_moved(item.kind(), &item.name())
                && unresolved.contains(&(item.kind(), item.name().into_owned()))
        });
        let names: BTreeSet<_> = restored
            .items()
            .map(|item| (item.kind(), item.name().into_owned()))
            .collect();
        locked
            .lock
            .unresolved
            .retain(|item| !names.contains(&(item.kind, item.name.clone())));
        locked.lock.append(restored);
        locked.lock.sort();
        // `lock` compared with the reduced old lock, so the comparison is made again; the changes
        // `gone` are kept, because they cannot be computed from the two locks
        let gone = locked
            .changes
            .iter()
            .filter(|change| change.change == "gone")
            .cloned();
        locked.changes = diff(old, &locked.lock).into_iter().chain(gone).collect();
        locked
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
