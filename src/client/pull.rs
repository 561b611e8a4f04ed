//! Downloads the items of a lock into a store, or straight into a bundle.

use super::{Client, stopped};
use crate::pull::{ShardShare, check_packages, check_signatures, pull};
use landfall_bundle as bundle;
use landfall_bundle::{
    Bundle, DirectBundle, DirectStart, PackOptions, PackPlan, PackedBundle, StreamTarget,
    write_stream,
};
use landfall_content::archives::{ImageInArchive, ImportedBlobs, import_blobs};
use landfall_content::bucket::{Bucket, ObjectWriter, UploadGuard};
use landfall_content::store::DiskStore;
use landfall_content::{
    BlobRead, BlobStore, LocalFirst, LocalStore, PartSource, WriteError, path_below, present_blobs,
    unique_blobs,
};
use landfall_item::lockfile::{Lock, losses};
use landfall_model::report::{ItemStatus, Progress, ReportItem};
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{Descriptor, Digest, Failure, ImageRef, Shard, locked, sum_sizes};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The options of [`Client::pull_bundle`].
#[derive(Default)]
pub struct BundleOptions {
    /// A store whose content is copied instead of downloaded.
    pub store: Option<DiskStore>,
    /// The compression of the bundle.
    pub pack: PackOptions,
    /// The key that signs the bundle.
    pub signer: Option<Arc<Signer>>,
    /// Hash the content of the store again, even if the journal records it as verified.
    pub rehash: bool,
}

/// The outcome of [`Client::pull_bundle`].
pub struct PulledBundle {
    /// One report item for each entry of the lock, and for each item that could not be locked.
    pub items: Vec<ReportItem>,
    /// The bundle; `None` if something is missing. Another run resumes the downloads.
    pub packed: Option<PackedBundle>,
    /// The keys that signed the bundle.
    pub keys: Vec<PublicKey>,
}

impl Client {
    /// Downloads the items of `lock`, or this client's shard of them, into `store`. Content that
    /// the store has is not downloaded; with `rehash` it is hashed again, even if the journal
    /// records it as verified.
    ///
    /// # Errors
    /// If the store cannot be used. An item that cannot be downloaded is a failed item of the
    /// result.
    pub async fn pull(
        &self,
        lock: &Lock,
        store: &DiskStore,
        rehash: bool,
    ) -> Result<Vec<ReportItem>, Failure> {
        let into: Arc<dyn LocalStore> = Arc::new(store.clone());
        let share = ShardShare::new(lock, self.shard);
        let imported = self.import(lock, &share, &into).await?;
        self.pull_to(lock, into, rehash, &imported).await
    }

    /// Like [`Client::pull`], into any kind of store. The blobs `imported` were copied from
    /// archives in this run: they are in the store, but count as new.
    pub(crate) async fn pull_to(
        &self,
        lock: &Lock,
        store: Arc<dyn BlobStore>,
        rehash: bool,
        imported: &BTreeSet<Digest>,
    ) -> Result<Vec<ReportItem>, Failure> {
        // before anything is looked up, so that `gc` deletes nothing that this run found present
        store.claim(
            &lock.fingerprint(),
            &lock.to_text(),
            lock.digests().collect(),
        )?;
        let upstream = self.upstreams();
        let mut items = self
            .pull_into(
                &ShardShare::new(lock, self.shard),
                upstream,
                &store,
                rehash,
                imported,
            )
            .await?;
        check_packages(lock, store.clone(), &mut items).await;
        if self.shard.is_only() {
            check_signatures(lock, &self.signatures, store, &mut items).await;
        }
        Ok(items)
    }

    async fn pull_into(
        &self,
        share: &ShardShare<'_>,
        source: Arc<dyn PartSource>,
        into: &Arc<dyn BlobStore>,
        rehash: bool,
        imported: &BTreeSet<Digest>,
    ) -> Result<Vec<ReportItem>, Failure> {
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
        // `pull` found the imported blobs present, although they are new in this run
        if !imported.is_empty() {
            for (entry, item) in share.each_entry().zip(&mut items) {
                if item.status == ItemStatus::Present
                    && entry
                        .parts
                        .iter()
                        .any(|part| imported.contains(&part.descriptor.digest))
                {
                    item.status = ItemStatus::Done;
                }
            }
        }
        Ok(items)
    }

    /// Copies the blobs of `share` that `into` lacks and that archives have: those of `--from`, and
    /// those next to the lock. Returns their digests.
    async fn import(
        &self,
        lock: &Lock,
        share: &ShardShare<'_>,
        into: &Arc<dyn LocalStore>,
    ) -> Result<BTreeSet<Digest>, Failure> {
        let mut imported = self.copy_from_archives(share, into).await?;
        imported.extend(self.copy_archived_images(lock, share, into).await?);
        Ok(imported)
    }

    /// Copies the blobs of `share` that the archives have and `into` lacks. Returns their digests.
    async fn copy_from_archives(
        &self,
        share: &ShardShare<'_>,
        into: &Arc<dyn LocalStore>,
    ) -> Result<BTreeSet<Digest>, Failure> {
        if self.archives.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (archives, into, progress) =
            (self.archives.clone(), into.clone(), self.progress.clone());
        let wanted = unique_blobs(share.each_entry());
        let copying = tokio::task::spawn_blocking(move || {
            let lacking = lacking(&*into, wanted, &*progress)?.into_iter();
            let mut wanted: BTreeMap<_, _> =
                lacking.map(|blob| (blob.digest.clone(), blob)).collect();
            progress.begin(
                "copy",
                wanted.len() as u64,
                sum_sizes(wanted.values().map(|blob| blob.size)),
            );
            // each import removes from `wanted` what it copied, so a blob is copied once
            let imports: Result<Vec<ImportedBlobs>, WriteError> = archives
                .iter()
                .map(|archive| import_blobs(archive, &mut wanted, &*into, &*progress))
                .collect();
            progress.end();
            imports
        });
        let imports = copying.await.map_err(WriteError::from)??;
        let imported = imports
            .iter()
            .flat_map(|import| &import.digests)
            .cloned()
            .collect();
        locked(&self.imports).extend(imports);
        Ok(imported)
    }

    /// Copies the blobs of `share` that `into` lacks and that belong to images of archives next to
    /// the lock. Returns their digests. An archive that changed is reported.
    async fn copy_archived_images(
        &self,
        lock: &Lock,
        share: &ShardShare<'_>,
        into: &Arc<dyn LocalStore>,
    ) -> Result<BTreeSet<Digest>, Failure> {
        let images = lock.images.iter();
        let archived = images.filter_map(|image| {
            let path = image.archive.as_ref().filter(|path| !path.is_empty())?;
            Some((path.clone(), image.name.clone()))
        });
        let archived: Vec<(String, ImageRef)> = archived.collect();
        if archived.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut wanted: HashMap<String, Vec<Descriptor>> = HashMap::new();
        for entry in share.each_entry() {
            let blobs = entry.parts.into_iter().map(|part| part.descriptor);
            wanted.entry(entry.name).or_default().extend(blobs);
        }
        let (into, progress) = (into.clone(), self.progress.clone());
        let (folder, limits) = (self.lock_folder.clone(), self.limits);
        let copying = tokio::task::spawn_blocking(move || {
            let mut imported = BTreeSet::new();
            for (path, name) in archived {
                let own = wanted.get(&name.to_string()).cloned().unwrap_or_default();
                let lacking = lacking(&*into, own, &*progress)?;
                if lacking.is_empty() {
                    continue;
                }
                let archive = path_below(&folder, &path)
                    .map_err(|error| error.to_string())
                    .and_then(|path| ImageInArchive::open(&path, &name, &limits));
                let copied =
                    archive.and_then(|archive| archive.import(&lacking, &*into, &*progress));
                match copied {
                    Ok(()) => imported.extend(lacking.into_iter().map(|blob| blob.digest)),
                    // the items fail below, and their messages say what to do
                    Err(why) => progress.note(&format!("{path}: {why}")),
                }
            }
            Ok::<_, WriteError>(imported)
        });
        Ok(copying.await.map_err(WriteError::from)??)
    }

    /// Downloads the content of `plan`, a plan of `lock`, straight into the bundle `out`. If
    /// something is missing, no bundle is written, and the downloaded content is kept next to `out`
    /// for another run.
    ///
    /// # Errors
    /// If the bundle cannot be written.
    pub async fn pull_bundle(
        &self,
        lock: &Lock,
        plan: Arc<PackPlan>,
        out: &Path,
        options: BundleOptions,
    ) -> Result<PulledBundle, Failure> {
        let BundleOptions {
            store,
            pack,
            signer,
            rehash,
        } = options;
        let keys = signer.iter().map(|signer| signer.key().clone()).collect();
        let planned = plan.clone();
        let to = out.to_path_buf();
        let progress = self.progress.clone();
        let begin = move || DirectBundle::begin(planned, store, &to, pack, signer, &*progress);
        match blocking(begin).await? {
            // an earlier run has written this bundle
            DirectStart::Complete(packed, keys) => {
                let items = plan.items.iter().cloned().chain(losses(lock));
                let mut items: Vec<ReportItem> = items.collect();
                if !self.signatures.is_empty() {
                    // the site may have other rules than in the earlier run
                    let earlier = Arc::new(Bundle::open(out)?);
                    check_signatures(lock, &self.signatures, earlier, &mut items).await;
                }
                let is_accepted = items.iter().all(|item| item.status != ItemStatus::Failed);
                Ok(PulledBundle {
                    items,
                    packed: Some(packed).filter(|_| is_accepted),
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
    ) -> Result<(Vec<ReportItem>, Option<PackedBundle>), Failure> {
        let local = Arc::new(bundle.clone());
        let compressor = bundle.clone();
        let source = Arc::new(LocalFirst::new(local.clone(), self.upstreams()));
        // blobs are compressed while others are still downloaded
        let compressing = blocking(move || compressor.compress());
        let pulling = async {
            let into: Arc<dyn LocalStore> = local;
            // Several runners cannot write one bundle, so there are no shards here.
            let share = ShardShare::new(lock, Shard::default());
            let pulled = match self.import(lock, &share, &into).await {
                Ok(imported) => {
                    let into: Arc<dyn BlobStore> = into;
                    self.pull_into(&share, source, &into, rehash, &imported)
                        .await
                }
                Err(error) => Err(error),
            };
            // also after an error: the compressor waits for blobs until the bundle is closed
            bundle.close();
            pulled
        };
        let (items, compressed) = tokio::join!(pulling, compressing);
        let mut items = items?;
        compressed?;
        let is_lost = |item: &ReportItem| item.status.is_loss();
        if items.iter().any(is_lost) {
            return Ok((items, None));
        }
        // Package signatures are checked in the complete bundle, before it gets its name, so that
        // no published bundle has a package with a wrong signature.
        let whole = blocking(move || bundle.complete()).await?;
        if !lock.packages.is_empty() || !self.signatures.is_empty() {
            let content = Arc::new(whole.open()?);
            check_packages(lock, content.clone(), &mut items).await;
            check_signatures(lock, &self.signatures, content, &mut items).await;
        }
        if items.iter().any(is_lost) {
            return Ok((items, None));
        }
        let packed = blocking(move || whole.publish()).await?;
        Ok((items, Some(packed)))
    }
}

/// The blobs of `wanted` that `store` lacks.
fn lacking(
    store: &dyn BlobStore,
    mut wanted: Vec<Descriptor>,
    progress: &dyn Progress,
) -> Result<Vec<Descriptor>, WriteError> {
    let present = present_blobs(store, wanted.clone(), false, progress)?;
    wanted.retain(|blob| !present.contains(&blob.digest));
    Ok(wanted)
}

/// Runs blocking work on a bundle, on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, bundle::BundleError> + Send + 'static,
) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(stopped)??)
}

/// The upload of a bundle to an object store.
pub(crate) struct BundleUpload(ObjectWriter);

impl BundleUpload {
    /// Begins the upload of a bundle of `lock`. Dropping the guard aborts the upload, so keep the
    /// guard in the task that an interruption drops.
    pub(crate) fn begin(
        bucket: &Bucket,
        name: &str,
        lock: &Lock,
    ) -> Result<(BundleUpload, UploadGuard), Failure> {
        let blobs = unique_blobs(lock.each_entry());
        let content = sum_sizes(blobs.iter().map(|blob| blob.size));
        // An upload has a limited number of parts, so their size depends on the expected total.
        // 1/64 is added for the lock, the index and the tar headers.
        let expected = content.saturating_add(content / 64);
        let (writer, guard) = ObjectWriter::begin(bucket, name, expected)?;
        Ok((BundleUpload(writer), guard))
    }

    /// Writes the bundle. Messages and the result name it `out`. The object appears only when all
    /// of it was uploaded.
    pub(crate) fn write(
        self,
        plan: &PackPlan,
        blobs: &dyn BlobRead,
        out: &Path,
        options: PackOptions,
        signer: Option<&Signer>,
        progress: &dyn Progress,
    ) -> Result<PackedBundle, Failure> {
        let BundleUpload(mut writer) = self;
        let target = StreamTarget {
            name: out,
            out: &mut writer,
        };
        let written = write_stream(plan, blobs, target, options, signer, progress)?;
        writer.finish()?;
        Ok(PackedBundle {
            files: vec![out.into()],
            ..written
        })
    }
}
