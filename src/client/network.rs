//! The verbs that need a network.

use super::ClientError;
use crate::lock::{ChartImages, Locked, diff, lock, recall, remember};
use crate::pull::{PullError, Share, check_packages, pull};
use crate::push::{Omitted, Options, PushError, Pushed, push};
use crate::update::{Asked, Updated, update};
use landfall_bundle::{
    self as bundle, DirectBundle, DirectStart, PackOptions, PackPlan, PackedBundle,
};
use landfall_content::archives::{Archive, Named, Taken, read_named, take};
use landfall_content::registry::Sessions;
use landfall_content::store::Disk;
use landfall_content::upstream::Upstreams;
use landfall_content::{
    BlobRead, Cached, Keep, LocalFirst, LocalSink, LocalSource, Source, Store, WriteError, held,
    stored_once,
};
use landfall_item::lockfile::Lock;
use landfall_item::lockfile::losses;
use landfall_item::manifest::{self, Wanted};
use landfall_item::{Pins, Resolver};
use landfall_model::report::{ItemStatus, Progress, ReportItem, RunReport};
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{DestinationMap, Digest, Limits, Shard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections to registries and web servers, and the verbs that use them. What the verbs of one
/// client ask of a host counts together: its limits, its sign-in, the ledger of hosts.
pub struct Client {
    sessions: Arc<Sessions>,
    limits: Limits,
    progress: Arc<dyn Progress>,
    archives: Arc<[Archive]>,
    /// Which part of a lock is pulled and delivered.
    shard: Shard,
    /// What came of the archives.
    taken: Mutex<Vec<Taken>>,
}

/// How a bundle is pulled.
#[derive(Default)]
pub struct BundleOptions {
    /// What this store has is not fetched.
    pub store: Option<Disk>,
    /// How it is packed.
    pub pack: PackOptions,
    /// Signs the bundle.
    pub signer: Option<Arc<Signer>>,
    /// Hash what the store has, whatever its journal says.
    pub rehash: bool,
}

/// What came of a bundle that was pulled.
pub struct PulledBundle {
    /// One item for each entry of the lock, and its losses.
    pub items: Vec<ReportItem>,
    /// The bundle, unless something is missing: then another run resumes.
    pub packed: Option<PackedBundle>,
    /// The keys that signed it.
    pub keys: Vec<PublicKey>,
}

impl Client {
    pub(super) fn new(
        sessions: Arc<Sessions>,
        limits: Limits,
        progress: Arc<dyn Progress>,
        archives: Vec<Archive>,
        shard: Shard,
    ) -> Client {
        Client {
            sessions,
            limits,
            progress,
            archives: archives.into(),
            shard,
            taken: Mutex::default(),
        }
    }

    /// The longest wait that others may ask for.
    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.limits.max_wait_secs)
    }

    /// What has come of the archives so far.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Which part of a lock it pulls and delivers.
    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn shared_sessions(&self) -> Arc<Sessions> {
        self.sessions.clone()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Resolves what manifests want to digests. The pins of `old` stay where `pins` says so;
    /// manifests that come are kept in `store`. What cannot be resolved is recorded in the lock.
    pub async fn lock(
        &self,
        wanted: &Wanted,
        old: Option<&Lock>,
        pins: Pins,
        store: &Disk,
    ) -> Locked {
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone())
            .finding_images(Arc::new(ChartImages(self.limits)))
            .with_archives(self.named(store).await)
            .with_accounts_for(wanted.charts.iter().map(|chart| chart.name.place()));
        let locked = lock(wanted, old, pins, &resolver).await;
        resolver.remember();
        locked
    }

    /// Finds out to what the versions in manifests may move by their policies, and what upstream
    /// says of everything else. Nothing is written but what comes along for `store`.
    ///
    /// # Errors
    /// When the manifests have a fault.
    pub(crate) async fn update(
        &self,
        asked: &Asked<'_>,
        store: &Disk,
    ) -> Result<Updated, manifest::Error> {
        let resolver = Resolver::new(self.sessions.clone(), store.clone(), self.progress.clone());
        let updated = update(asked, &resolver).await;
        resolver.remember();
        updated
    }

    /// Locks what an update wants. Pins stay, but those whose new digest it takes; a pin that
    /// cannot be replaced stays too. With `referrers` signatures and other referrers are looked up
    /// again.
    pub(crate) async fn lock_updated(
        &self,
        updated: &Updated,
        old: Option<&Lock>,
        referrers: bool,
        store: &Disk,
    ) -> Locked {
        let pins = if referrers {
            Pins::Referrers
        } else {
            Pins::Keep
        };
        let is_moved = |kind, name: &str| updated.relock.contains(&(kind, name.to_owned()));
        let kept = old.map(|old| {
            let mut kept = old.clone();
            kept.retain(|item| !is_moved(item.kind(), &item.name()));
            kept
        });
        let mut locked = self.lock(&updated.wanted, kept.as_ref(), pins, store).await;
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

    /// As [`Client::lock`] without an old lock, for a lock that nobody keeps: `store` remembers
    /// what was resolved, and an image whose tag still stands there is asked for no manifest.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn resolve(&self, wanted: &Wanted, store: &Disk) -> Result<Locked, WriteError> {
        let recalled = recall(store, &*self.progress);
        let locked = self
            .lock(wanted, Some(&recalled), Pins::Recall, store)
            .await;
        remember(store, recalled, &locked.lock)?;
        Ok(locked)
    }

    /// Brings everything that `lock` names into `store`, or this client's shard of it. What is
    /// there is not asked for; with `rehash` it is hashed again, whatever the store's journal says.
    ///
    /// # Errors
    /// When the store cannot be used. What fails at its source is an item that says so.
    pub async fn pull(
        &self,
        lock: &Lock,
        store: &Disk,
        rehash: bool,
    ) -> Result<Vec<ReportItem>, PullError> {
        let into: Arc<dyn LocalSink> = Arc::new(store.clone());
        let came = self.take(&Share::new(lock, self.shard), &into).await?;
        self.pull_to(lock, into, rehash, &came).await
    }

    /// As [`Client::pull`] into any store; `came` is there already, and is new.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn pull_to(
        &self,
        lock: &Lock,
        store: Arc<dyn Store>,
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
                &Share::new(lock, self.shard),
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
        share: &Share<'_>,
        source: Arc<dyn Source>,
        into: &Arc<dyn Store>,
        rehash: bool,
        came: &BTreeSet<Digest>,
    ) -> Result<Vec<ReportItem>, PullError> {
        let watching = (self.progress.clone(), self.sessions.transport().activity());
        let mut items = pull(share, source, into, self.limits, rehash, watching).await?;
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

    /// Brings what the archives have of `share` to `into`; returns what came.
    async fn take(
        &self,
        share: &Share<'_>,
        into: &Arc<dyn LocalSink>,
    ) -> Result<BTreeSet<Digest>, PullError> {
        if self.archives.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (archives, into, progress) =
            (self.archives.clone(), into.clone(), self.progress.clone());
        let wanted = stored_once(share.each_entry());
        let taking = tokio::task::spawn_blocking(move || {
            let there = held(&*into, wanted.clone(), false, &*progress)?;
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
            let taken: Result<Vec<Taken>, WriteError> = archives
                .iter()
                .map(|archive| take(archive, &mut wanted, &*into, &*progress))
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

    /// What the images of the archives are called, and their manifests.
    async fn named(&self, store: &Disk) -> Arc<Named> {
        if self.archives.is_empty() {
            return Arc::default();
        }
        let (archives, store, limits) = (
            self.archives.clone(),
            store.dir().to_path_buf(),
            self.limits,
        );
        let reading = tokio::task::spawn_blocking(move || {
            let mut named = Named::default();
            for archive in archives.iter() {
                if let Err(error) = read_named(archive, &mut named, &store, &limits) {
                    named.left.push(format!("not kept for pull: {error}"));
                }
            }
            named
        });
        let named = reading.await.unwrap_or_default();
        named.left.iter().for_each(|line| self.progress.note(line));
        self.progress.tell(&format!(
            "the archives name {}",
            landfall_model::report::count_of(named.count(), "image")
        ));
        Arc::new(named)
    }

    /// Brings everything that `plan` of `lock` needs straight into the bundle `out`. Where
    /// something is missing, there is no bundle yet, and what came stays beside it for the next
    /// run.
    ///
    /// # Errors
    /// When the bundle cannot be made.
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

    /// Brings everything into the bundle, and closes it if nothing is missing.
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
            let into: Arc<dyn LocalSink> = near;
            // a bundle is one runner's
            let share = Share::new(lock, Shard::default());
            let pulled = match self.take(&share, &into).await {
                Ok(came) => {
                    self.pull_into(&share, source, &(into as Arc<dyn Store>), rehash, &came)
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
        let packed = match items.iter().any(is_lost) {
            true => None,
            false => Some(blocking(move || whole.publish()).await?),
        };
        Ok((items, packed))
    }

    /// Delivers what `lock` names from a store or bundle to the destinations of `mapping`. What is
    /// `omitted` there, as a delta omits what its bases have, must stand at the registry.
    ///
    /// # Errors
    /// What stops it before the first byte. What fails later is an item that says so.
    pub async fn push(
        &self,
        lock: &Lock,
        blobs: Arc<dyn BlobRead>,
        omitted: &Omitted,
        mapping: &DestinationMap,
        options: Options,
    ) -> Result<Pushed, PushError> {
        self.deliver(
            lock,
            Arc::new(LocalSource(blobs)),
            omitted,
            mapping,
            options,
        )
        .await
    }

    /// Delivers what `lock` names from upstream to the destinations of `mapping`. `store` is asked
    /// first, and keeps of what passes what `keep` says.
    ///
    /// # Errors
    /// As [`Client::push`].
    pub async fn mirror(
        &self,
        lock: &Lock,
        (store, keep): (&Disk, Keep),
        mapping: &DestinationMap,
        options: Options,
    ) -> Result<Pushed, PushError> {
        self.mirror_by(lock, (Arc::new(store.clone()), keep), mapping, options)
            .await
    }

    /// As [`Client::mirror`] with any store.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn mirror_by(
        &self,
        lock: &Lock,
        (store, keep): (Arc<dyn Store>, Keep),
        mapping: &DestinationMap,
        options: Options,
    ) -> Result<Pushed, PushError> {
        let upstream = Arc::new(Upstreams(self.sessions.clone()));
        let source = Arc::new(Cached::new(store, upstream, keep, self.limits));
        self.deliver(lock, source, &Omitted::default(), mapping, options)
            .await
    }

    async fn deliver(
        &self,
        lock: &Lock,
        source: Arc<dyn Source>,
        omitted: &Omitted,
        mapping: &DestinationMap,
        options: Options,
    ) -> Result<Pushed, PushError> {
        let (sessions, progress) = (&self.sessions, self.progress.clone());
        push(
            lock,
            mapping,
            (source, omitted),
            sessions,
            options,
            self.shard,
            progress,
        )
        .await
    }

    /// Keeps in `store` which hosts this client has sent requests to, for `landfall egress`.
    #[cfg(feature = "cli")]
    pub(crate) fn remember_hosts(&self, store: &Disk, command: &str) {
        let hosts = self.sessions.transport().ledger().hosts();
        let remembered = crate::egress::remember(store, &hosts, command);
        // a full disk is told by what needed more of it
        if let Some(error) = remembered.err().filter(|error| !error.is_full_disk()) {
            self.progress.note(&format!(
                "`landfall egress` will not know this run: {error}"
            ));
        }
    }

    /// A report of `items` with everything that this client has sent and received so far.
    pub fn report(&self, items: Vec<ReportItem>) -> RunReport {
        let hosts = self.sessions.transport().ledger().hosts();
        RunReport {
            items,
            bytes_transferred: hosts.iter().map(|host| host.bytes).sum(),
            requests: hosts.iter().map(|host| host.requests).sum(),
            hosts,
            ..RunReport::default()
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, bundle::BundleError> + Send + 'static,
) -> Result<T, ClientError> {
    Ok(tokio::task::spawn_blocking(work).await??)
}
