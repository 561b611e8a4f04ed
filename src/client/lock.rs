//! Resolves the items of manifests to digests, and updates versions by their policies.

use super::Client;
use crate::lock::{ChartImages, Locked, lock, recall, remember};
use crate::update::{UpdateOutcome, UpdateRequest, update};
use landfall_content::WriteError;
use landfall_content::archives::{ArchiveImages, read_image_names};
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{self, FileOverrides, MergedManifest, load_edited};
use landfall_item::{PinPolicy, Resolver};
use landfall_model::report::count_of;
use landfall_signature::SignaturePolicy;
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
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .with_signatures(self.signatures_for(manifest))
            .finding_images(Arc::new(ChartImages(self.limits)))
            .with_archives(self.archive_images(store).await)
            .with_looked_up(updated.looked_up.clone())
            .with_git_tags(updated.git_tags.clone())
            // accounts of chart repositories are used only for the repositories that the
            // manifests name, not for the repositories of a chart's dependencies
            .with_accounts_for(
                manifest
                    .requests
                    .charts
                    .iter()
                    .map(|chart| chart.name.repository_url()),
            );
        let locked = lock(manifest, old, &updated.relock, pins, &resolver).await;
        // facts about repositories save requests in the next run, even if items failed
        resolver.remember();
        locked
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
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .with_signatures(self.signatures_for(&manifest));
        let updated = update(request, &resolver).await;
        resolver.remember();
        updated
    }

    /// Locks the manifests after an update. The update replaces some pins, and all others are kept.
    /// If the new digest of an item cannot be resolved, its old pin is kept if it meets the rules.
    /// With `referrers`, signatures and other referrers are looked up again.
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
        // an update must not lose an item whose new version cannot be resolved
        self.lock_after(&updated.manifest, old, updated, pins, store)
            .await
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
