//! Pulling: everything that a lock names is fetched into a store, or straight into a bundle.

use super::{Client, ClientError};
use crate::pull::{PullError, ShardShare, check_packages, pull};
use landfall_bundle::{
    self as bundle, DirectBundle, DirectStart, PackOptions, PackPlan, PackedBundle,
};
use landfall_content::archives::{ImportedBlobs, import_blobs};
use landfall_content::store::DiskStore;
use landfall_content::upstream::Upstreams;
use landfall_content::{
    BlobStore, LocalFirst, LocalStore, PartSource, WriteError, present_blobs, unique_blobs,
};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{Digest, Shard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// Options of [`Client::pull_bundle`].
#[derive(Default)]
pub struct BundleOptions {
    /// A store whose content is copied instead of downloaded.
    pub store: Option<DiskStore>,
    /// How the bundle is compressed.
    pub pack: PackOptions,
    /// The key that signs the bundle.
    pub signer: Option<Arc<Signer>>,
    /// Hash the content of the store again, even if its journal has it as verified.
    pub rehash: bool,
}

/// The result of [`Client::pull_bundle`].
pub struct PulledBundle {
    /// One for each entry of the lock, and for each item that the lock could not resolve.
    pub items: Vec<ReportItem>,
    /// The bundle; `None` if something is missing. Another run resumes.
    pub packed: Option<PackedBundle>,
    /// The keys that signed the bundle.
    pub keys: Vec<PublicKey>,
}

impl Client {
    /// Downloads what `lock` names, or this client's shard of it, into `store`. Content that the
    /// store has is not downloaded; with `rehash` it is hashed again, even if the journal has it as
    /// verified.
    ///
    /// # Errors
    /// Returns an error if the store cannot be used. What upstream refuses is a failed item.
    pub async fn pull(
        &self,
        lock: &Lock,
        store: &DiskStore,
        rehash: bool,
    ) -> Result<Vec<ReportItem>, PullError> {
        let into: Arc<dyn LocalStore> = Arc::new(store.clone());
        let came = self
            .copy_from_archives(&ShardShare::new(lock, self.shard), &into)
            .await?;
        self.pull_to(lock, into, rehash, &came).await
    }

    /// Like [`Client::pull`], into any kind of store. `came` was copied from archives: it is in the
    /// store already, but counts as new.
    pub(crate) async fn pull_to(
        &self,
        lock: &Lock,
        store: Arc<dyn BlobStore>,
        rehash: bool,
        came: &BTreeSet<Digest>,
    ) -> Result<Vec<ReportItem>, PullError> {
        store.claim(
            &lock.fingerprint(),
            &lock.to_text(),
            lock.digests().collect(),
        )?;
        let upstream = Arc::new(Upstreams(self.sessions.clone()));
        let mut items = self
            .pull_into(
                &ShardShare::new(lock, self.shard),
                upstream,
                &store,
                rehash,
                came,
            )
            .await?;
        check_packages(lock, store, &mut items).await;
        Ok(items)
    }

    async fn pull_into(
        &self,
        share: &ShardShare<'_>,
        source: Arc<dyn PartSource>,
        into: &Arc<dyn BlobStore>,
        rehash: bool,
        came: &BTreeSet<Digest>,
    ) -> Result<Vec<ReportItem>, PullError> {
        let mut items = pull(
            share,
            source,
            into,
            self.limits,
            rehash,
            self.progress.clone(),
            self.sessions.transport().activity(),
        )
        .await?;
        if !came.is_empty() {
            for (entry, item) in share.each_entry().zip(&mut items) {
                let is_new = || {
                    entry
                        .parts
                        .iter()
                        .any(|part| came.contains(&part.descriptor.digest))
                };
                if item.status == ItemStatus::Present && is_new() {
                    item.status = ItemStatus::Done;
                }
            }
        }
        Ok(items)
    }

    /// Copies the content of `share` that the archives have to `into`. Returns the digests.
    async fn copy_from_archives(
        &self,
        share: &ShardShare<'_>,
        into: &Arc<dyn LocalStore>,
    ) -> Result<BTreeSet<Digest>, PullError> {
        if self.archives.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (archives, into, progress) =
            (self.archives.clone(), into.clone(), self.progress.clone());
        let wanted = unique_blobs(share.each_entry());
        let taking = tokio::task::spawn_blocking(move || {
            let there = present_blobs(&*into, wanted.clone(), false, &*progress)?;
            let wanted = wanted
                .into_iter()
                .filter(|blob| !there.contains(&blob.digest));
            let mut wanted: BTreeMap<_, _> =
                wanted.map(|blob| (blob.digest.clone(), blob)).collect();
            progress.begin(
                "take",
                wanted.len() as u64,
                wanted.values().map(|blob| blob.size).sum(),
            );
            let taken: Result<Vec<ImportedBlobs>, WriteError> = archives
                .iter()
                .map(|archive| import_blobs(archive, &mut wanted, &*into, &*progress))
                .collect();
            progress.end();
            taken
        });
        let taken = taking
            .await
            .map_err(|error| WriteError::Refused(error.to_string()))??;
        let came = taken
            .iter()
            .flat_map(|taken| &taken.digests)
            .cloned()
            .collect();
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(taken);
        Ok(came)
    }

    /// Downloads what `plan` of `lock` needs straight into the bundle `out`. If something is
    /// missing, no bundle is written, and the downloaded content is kept next to it for another
    /// run.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub async fn pull_bundle(
        &self,
        lock: &Lock,
        plan: Arc<PackPlan>,
        out: &Path,
        options: BundleOptions,
    ) -> Result<PulledBundle, ClientError> {
        let BundleOptions {
            store,
            pack,
            signer,
            rehash,
        } = options;
        let keys = signer.iter().map(|signer| signer.key().clone()).collect();
        let (planned, to, progress) = (plan.clone(), out.to_path_buf(), self.progress.clone());
        let begin = move || DirectBundle::begin(planned, store, &to, pack, signer, &*progress);
        match blocking(begin).await? {
            DirectStart::Complete(packed, keys) => {
                let items = plan.items.iter().cloned().chain(losses(lock)).collect();
                Ok(PulledBundle {
                    items,
                    packed: Some(packed),
                    keys,
                })
            }
            DirectStart::Incomplete(bundle) => {
                let (items, packed) = self.fill(lock, bundle, rehash).await?;
                Ok(PulledBundle {
                    items,
                    packed,
                    keys,
                })
            }
        }
    }

    /// Downloads everything into the bundle, and publishes it if nothing is missing.
    async fn fill(
        &self,
        lock: &Lock,
        bundle: DirectBundle,
        rehash: bool,
    ) -> Result<(Vec<ReportItem>, Option<PackedBundle>), ClientError> {
        let (near, compressor) = (Arc::new(bundle.clone()), bundle.clone());
        let source = Arc::new(LocalFirst::new(
            near.clone(),
            Arc::new(Upstreams(self.sessions.clone())),
        ));
        let compressing = blocking(move || compressor.compress());
        let pulling = async {
            let into: Arc<dyn LocalStore> = near;
            // Several runners cannot write one bundle, so there are no shards here.
            let share = ShardShare::new(lock, Shard::default());
            let pulled = match self.copy_from_archives(&share, &into).await {
                Ok(came) => {
                    self.pull_into(&share, source, &(into as Arc<dyn BlobStore>), rehash, &came)
                        .await
                }
                Err(error) => Err(error),
            };
            bundle.close();
            pulled
        };
        let (items, compressed) = tokio::join!(pulling, compressing);
        let mut items = items?;
        compressed?;
        let is_lost =
            |item: &ReportItem| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing);
        if items.iter().any(is_lost) {
            return Ok((items, None));
        }
        let whole = blocking(move || bundle.complete()).await?;
        if !lock.packages.is_empty() {
            check_packages(lock, Arc::new(whole.open()?), &mut items).await;
        }
        if items.iter().any(is_lost) {
            return Ok((items, None));
        }
        let packed = blocking(move || whole.publish()).await?;
        Ok((items, Some(packed)))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, bundle::BundleError> + Send + 'static,
) -> Result<T, ClientError> {
    Ok(tokio::task::spawn_blocking(work).await??)
}
