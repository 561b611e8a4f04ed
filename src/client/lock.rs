//! Locking: what manifests name is resolved to digests, and versions are updated by their policies.

use super::Client;
use crate::lock::{ChartImages, Locked, diff, lock, recall, remember};
use crate::update::{UpdateOutcome, UpdateRequest, update};
use landfall_content::WriteError;
use landfall_content::archives::{ArchiveImages, read_image_names};
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{self, MergedManifest};
use landfall_item::{PinPolicy, Resolver};
use landfall_model::report::count_of;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Client {
    /// Resolves what manifests name to digests. `pins` says which pins of `old` are kept. `store`
    /// keeps downloaded manifests. The lock records what cannot be resolved.
    pub async fn lock(
        &self,
        wanted: &MergedManifest,
        old: Option<&Lock>,
        pins: PinPolicy,
        store: &DiskStore,
    ) -> Locked {
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .finding_images(Arc::new(ChartImages(self.limits)))
            .with_archives(self.archive_images(store).await)
            .with_accounts_for(
                wanted
                    .requests
                    .charts
                    .iter()
                    .map(|chart| chart.name.place()),
            );
        let locked = lock(wanted, old, pins, &resolver).await;
        resolver.remember();
        locked
    }

    /// Finds newer versions that the policies in manifests allow, and changes upstream of all other
    /// items. Writes nothing except downloaded manifests to `store`.
    pub(crate) async fn update(
        &self,
        asked: &UpdateRequest<'_>,
        store: &DiskStore,
    ) -> Result<UpdateOutcome, manifest::LoadManifestError> {
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone());
        let updated = update(asked, &resolver).await;
        resolver.remember();
        updated
    }

    /// Locks the manifests after an update. Pins are kept, except those that the update replaces;
    /// if the new digest cannot be resolved, the old pin is kept too. With `referrers`, signatures
    /// and other referrers are looked up again.
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
        let lost: BTreeSet<_> = locked
            .lock
            .unresolved
            .iter()
            .map(|lost| (lost.kind, lost.name.clone()))
            .collect();
        let mut back = Lock {
            endpoints: Vec::new(),
            missing: Vec::new(),
            unresolved: Vec::new(),
            ..old.clone()
        };
        back.retain(|item| {
            is_moved(item.kind(), &item.name())
                && lost.contains(&(item.kind(), item.name().into_owned()))
        });
        let names: BTreeSet<_> = back
            .items()
            .map(|item| (item.kind(), item.name().into_owned()))
            .collect();
        locked
            .lock
            .unresolved
            .retain(|lost| !names.contains(&(lost.kind, lost.name.clone())));
        locked.lock.append(back);
        locked.lock.sort();
        let gone = locked
            .changes
            .iter()
            .filter(|change| change.change == "gone")
            .cloned();
        locked.changes = diff(old, &locked.lock).into_iter().chain(gone).collect();
        locked
    }

    /// Like [`Client::lock`] without an old lock, for a lock that is not kept. `store` remembers
    /// what was resolved: no manifest is requested for an image whose tag did not change.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub async fn resolve(
        &self,
        wanted: &MergedManifest,
        store: &DiskStore,
    ) -> Result<Locked, WriteError> {
        let recalled = recall(store, &*self.progress);
        let locked = self
            .lock(wanted, Some(&recalled), PinPolicy::Recall, store)
            .await;
        remember(store, recalled, &locked.lock)?;
        Ok(locked)
    }

    /// The names of the images in the archives, and their manifests.
    async fn archive_images(&self, store: &DiskStore) -> Arc<ArchiveImages> {
        if self.archives.is_empty() {
            return Arc::default();
        }
        let (archives, store, limits) = (
            self.archives.clone(),
            store.dir().to_path_buf(),
            self.limits,
        );
        let reading = tokio::task::spawn_blocking(move || {
            let mut named = ArchiveImages::default();
            for archive in archives.iter() {
                if let Err(error) = read_image_names(archive, &mut named, &store, &limits) {
                    named.skipped.push(format!("not kept for pull: {error}"));
                }
            }
            named
        });
        let named = reading.await.unwrap_or_default();
        named
            .skipped
            .iter()
            .for_each(|line| self.progress.note(line));
        self.progress.tell(&format!(
            "the archives name {}",
            count_of(named.count(), "image")
        ));
        Arc::new(named)
    }
}
