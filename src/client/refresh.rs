//! `landfall refresh` as one call: update, lock, pull and pack. All its state between two runs is
//! in the manifests, the lock, `landfall.lock.seen` and the store, so it can be stopped and run
//! again at any time.

use super::{BundleUpload, Client, DeliveredBundles, LockFileState, PreviousLock, stopped};
use crate::lock::{Locked, add_changelogs};
use crate::update::{UpdateOutcome, UpdateRequest};
use jiff::ToSpan;
use jiff::civil::Date;
use landfall_bundle::{
    self as bundle, BaseName, Bundle, DeltaBase, PackOptions, PackPlan, Packaging, PackedBundle,
    RecipeSummary, Serial, VolumeSize, volume_path,
};
use landfall_content::bucket::{Bucket, BucketLocation, OpenObject};
use landfall_content::store::DiskStore;
use landfall_content::{BlobRead, BlobStore, WriteError};
use landfall_item::LockedItem;
use landfall_item::lockfile::Lock;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{Descriptor, Digest, Failure, today};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The arguments of [`Client::refresh`].
pub(crate) struct RefreshRequest<'a> {
    pub(crate) update: UpdateRequest<'a>,
    /// The path of the lock.
    pub(crate) lock_path: &'a Path,
    pub(crate) previous_lock: Option<&'a PreviousLock>,
    /// Look up signatures and other referrers again.
    pub(crate) referrers: bool,
    /// The object store for the content; `None` for the store on disk.
    pub(crate) object_store: Option<BucketLocation>,
    /// The path or URL of the bundle.
    pub(crate) out: PathBuf,
    /// The object that `out` names, if it is in an object store.
    pub(crate) object: Option<(Bucket, String)>,
    pub(crate) bases: Vec<RefreshBase>,
    /// The content that the receiver has, as the base of patches; `None` for a bundle without
    /// patches.
    pub(crate) patch_since: Option<DeliveredBundles>,
    pub(crate) pack: PackOptions,
    pub(crate) volume_size: Option<VolumeSize>,
    pub(crate) signer: Option<Arc<Signer>>,
    /// The number of the bundle in its series.
    pub(crate) serial: Option<u64>,
    /// The name of the series, if it is not the name of the manifest.
    pub(crate) series: Option<String>,
    pub(crate) allow_partial: bool,
}

/// A base of the delta: a bundle, lock or receipt of the receiver.
pub(crate) struct RefreshBase {
    pub(crate) base: DeltaBase,
    /// The fingerprint of the lock whose content the receiver has completely; `None` for a partial
    /// bundle.
    pub(crate) complete_lock: Option<Digest>,
    /// The names of the items in a receipt, which may lack items that could not be pushed. `None`
    /// if the base is not a receipt.
    pub(crate) pushed: Option<BTreeSet<String>>,
}

impl RefreshBase {
    /// Whether the receiver has all items of `lock`.
    fn has_all(&self, lock: &Lock) -> bool {
        let is_pushed = |item: LockedItem<'_>| {
            let pushed = self.pushed.as_ref();
            pushed.is_none_or(|names| names.contains(&*item.name()))
        };
        self.complete_lock.as_ref() == Some(&lock.fingerprint()) && lock.items().all(is_pushed)
    }
}

/// The result of [`Client::refresh`], for the report.
pub(crate) struct Refreshed {
    pub(crate) updated: UpdateOutcome,
    pub(crate) locked: Locked,
    /// Whether the lock file has the lock.
    pub(crate) lock_file: LockFileState,
    /// One report item for each item of the lock, and for each item that failed. A failed step
    /// decides the status of its item; later steps do not change it.
    pub(crate) items: Vec<ReportItem>,
    /// The manifests and the lock, as far as they were written.
    pub(crate) files: Vec<PathBuf>,
    /// `None` if nothing had to be packed: the lock is empty, the receiver has everything already,
    /// or an earlier run packed this bundle.
    pub(crate) bundle: Option<RefreshedBundle>,
}

/// The bundle of a refresh.
pub(crate) struct RefreshedBundle {
    pub(crate) plan: PackPlan,
    /// `None` if no item is available, or if an item is missing and a partial bundle is not
    /// allowed.
    pub(crate) packed: Option<PackedBundle>,
    /// The blobs with patches and those without one, if patches were requested.
    pub(crate) patched: Option<RecipeSummary>,
    /// The keys that signed the bundle.
    pub(crate) keys: Vec<PublicKey>,
}

impl Client {
    /// Updates manifests, locks them, and pulls and packs the content that the receiver of the
    /// bundle lacks. `memory` is the store on disk that remembers upstream responses of earlier
    /// runs. `on_locked` is called with the new lock before its content is downloaded.
    pub(crate) async fn refresh(
        &self,
        mut request: RefreshRequest<'_>,
        memory: &DiskStore,
        on_locked: impl Fn(&Lock),
    ) -> Result<Refreshed, Failure> {
        let updated = self.update(&request.update, memory).await;
        // recorded here and again below, so that the hosts of the update are not lost if a later
        // step is interrupted
        self.remember_hosts(memory, "refresh");
        let refreshed = self
            .refresh_updated(&mut request, updated?, memory, on_locked)
            .await;
        self.remember_hosts(memory, "refresh");
        refreshed
    }

    async fn refresh_updated(
        &self,
        request: &mut RefreshRequest<'_>,
        updated: UpdateOutcome,
        memory: &DiskStore,
        on_locked: impl Fn(&Lock),
    ) -> Result<Refreshed, Failure> {
        // a number without a series is reported before anything is written or pulled
        let serial = serial(request, updated.manifest.name.as_ref())?;
        // Manifests first: if the run ends before the lock is written, the next run locks the items
        // that they request. In the other order, the lock could have items that no manifest
        // requests.
        self.write_manifests(&updated)?;
        let previous = request.previous_lock;
        let path = request.lock_path;
        let referrers = request.referrers;
        let (mut locked, lock_file) = self
            .lock_and_write(&updated, previous, path, referrers, memory)
            .await?;
        let mut files: Vec<PathBuf> = updated.files().into_iter().cloned().collect();
        files.extend((lock_file == LockFileState::Written).then(|| path.to_path_buf()));
        on_locked(&locked.lock);

        let mut items = locked.items.clone();
        let mut packed = None;
        // nothing is pulled if the lock is empty or in no file, or if its content was delivered or
        // packed before
        let is_usable = locked.lock.items().next().is_some() && lock_file != LockFileState::Kept;
        if is_usable && !is_delivered(request, &locked.lock, serial.as_ref()) {
            let store: Arc<dyn BlobStore> = match &request.object_store {
                Some(location) => self.open_objects(location)?,
                None => Arc::new(memory.clone()),
            };
            let pulled = self
                .pull_to(&locked.lock, store.clone(), false, &BTreeSet::new())
                .await?;
            for item in pulled {
                merge_item(&mut items, item);
            }
            let faults = tokio::task::block_in_place(|| {
                add_changelogs(&mut locked.changes, &locked.lock, &*store)
            });
            faults.iter().for_each(|fault| self.progress.note(fault));
            let bundle = self
                .pack_refreshed(request, &locked.lock, store, serial)
                .await?;
            for item in missing_items(&bundle.plan) {
                merge_item(&mut items, item);
            }
            packed = Some(bundle);
        }
        updated.add_failures(&mut items);
        mark_failing(memory, &mut items, today())?;
        Ok(Refreshed {
            updated,
            locked,
            lock_file,
            items,
            files,
            bundle: packed,
        })
    }

    async fn pack_refreshed(
        &self,
        request: &mut RefreshRequest<'_>,
        lock: &Lock,
        store: Arc<dyn BlobStore>,
        serial: Option<Serial>,
    ) -> Result<RefreshedBundle, Failure> {
        let bases: Vec<DeltaBase> = request.bases.drain(..).map(|given| given.base).collect();
        let upload = request.object.take();
        let upload = upload
            .map(|(bucket, name)| BundleUpload::begin(&bucket, &name, lock))
            .transpose()?;
        // The guard stays in this task, where Ctrl-C drops it and so aborts the upload.
        let (upload, _abort_on_drop) = upload.unzip();
        let packaging = Packaging {
            volume_size: request.volume_size,
            signer: request.signer.clone(),
            ..Packaging::default()
        };
        let out = request.out.clone();
        let options = request.pack;
        let allow_partial = request.allow_partial;
        let lock = lock.clone();
        let progress = self.progress.clone();
        let patch_since = request.patch_since.take();
        let work = tokio::task::spawn_blocking(move || {
            let mut plan = PackPlan::delta(&lock, &*store, &bases, today())?;
            plan.serial = serial;
            if plan.items.is_empty() || (!plan.missing.is_empty() && !allow_partial) {
                return Ok(RefreshedBundle {
                    plan,
                    packed: None,
                    patched: None,
                    keys: Vec::new(),
                });
            }
            let patched = match patch_since {
                Some(delivered) => {
                    let blobs: Arc<dyn BlobRead> = store.clone();
                    Some(delivered.patch(&mut plan, &lock, &blobs, &bases, &*progress)?)
                }
                None => None,
            };
            let signer = packaging.signer.as_deref();
            let keys = signer.map(|signer| signer.key().clone());
            let packed = match upload {
                Some(upload) => upload.write(&plan, &*store, &out, options, signer, &*progress)?,
                None => {
                    bundle::write_packaged(&plan, &*store, &out, options, &packaging, &*progress)?
                }
            };
            Ok(RefreshedBundle {
                plan,
                packed: Some(packed),
                patched,
                keys: keys.into_iter().collect(),
            })
        });
        work.await.map_err(stopped)?
    }
}

/// The failure of a bundle with a number, if the request, the lock and the manifests name no series
/// for it.
pub(crate) fn unnamed_series() -> Failure {
    Failure::usage("the bundle has a number, but its series has no name").with_help(
        "add --series NAME, or give every manifest the same metadata.name and lock again",
    )
}

/// The series and number of the bundle, if the request has a number. `name` is the name of the
/// manifests.
fn serial(request: &RefreshRequest<'_>, name: Option<&String>) -> Result<Option<Serial>, Failure> {
    let Some(number) = request.serial else {
        return Ok(None);
    };
    let series = request.series.as_ref().or(name).cloned();
    let series = series.ok_or_else(unnamed_series)?;
    Ok(Some(Serial { series, number }))
}

/// Whether the receiver has all items of `lock`, or an earlier run wrote the requested bundle to
/// `out`. That bundle must be complete, split as requested, and packed from the same lock and
/// bases. It must have the number `serial` if there is one, and be signed with the key of the
/// request if there is one.
fn is_delivered(request: &RefreshRequest<'_>, lock: &Lock, serial: Option<&Serial>) -> bool {
    if !request.bases.is_empty() && request.bases.iter().all(|base| base.has_all(lock)) {
        return true;
    }
    let Some(bundle) = existing_bundle(request) else {
        return false;
    };
    // if no number is requested, the bundle may have any number
    if serial.is_some() && bundle.serial().as_ref() != serial {
        return false;
    }
    if let Some(signer) = &request.signer
        && !bundle.signing_keys().contains(signer.key())
    {
        return false;
    }
    // A delta with other bases omits other content, although it has the same lock.
    let references = bundle.references().iter().map(|one| &one.blob);
    let outside: Vec<Descriptor> = bundle.omitted().iter().chain(references).cloned().collect();
    let bases = request.bases.iter();
    let requested: BTreeSet<BaseName> = bases.map(|base| base.base.named(&outside)).collect();
    let has_bases = requested.iter().eq(bundle.bases());
    // A bundle that omits nothing records no bases.
    let is_whole = bundle.bases().is_empty() && omits_nothing(&request.bases, lock);
    *bundle.fingerprint() == lock.fingerprint()
        && bundle.partial().is_empty()
        && (has_bases || is_whole)
}

/// Whether a delta of `lock` contains everything, because no blob is in every base.
fn omits_nothing(bases: &[RefreshBase], lock: &Lock) -> bool {
    let parts = lock.entries().into_iter().flat_map(|entry| entry.parts);
    // every delta contains the manifests
    let mut blobs = parts.filter(|part| part.is_stored() && !part.is_manifest());
    blobs.all(|blob| bases.iter().any(|base| !base.base.has(&blob.descriptor)))
}

/// The bundle of an earlier run, if it can be opened and is split as the request says.
fn existing_bundle(request: &RefreshRequest<'_>) -> Option<Bundle> {
    if let Some((bucket, name)) = &request.object {
        let object = OpenObject::open(bucket, name).ok()?;
        return Bundle::open_object(Arc::new(object)).ok();
    }
    let Some(VolumeSize(most)) = request.volume_size else {
        let bundle = Bundle::open(&request.out).ok()?;
        return (!bundle.is_split()).then_some(bundle);
    };
    let volumes = (1..).map(|number| volume_path(&request.out, number));
    let mut sizes = volumes.map_while(|volume| Some(volume.metadata().ok()?.len()));
    if sizes.any(|size| size > most) {
        return None;
    }
    // by the name of a volume, since another file may have the name of the bundle
    Bundle::open(&volume_path(&request.out, 1)).ok()
}

/// Report items for the content that a bundle should contain but lacks.
pub(crate) fn missing_items(plan: &PackPlan) -> Vec<ReportItem> {
    let missing = plan.missing.iter().map(|missing| ReportItem {
        digest: missing.digest.clone(),
        ..ReportItem::new(
            missing.item.kind,
            missing.item.name.clone(),
            ItemStatus::Missing,
            Some(missing.reason.clone()),
        )
    });
    missing.collect()
}

/// Merges the result of a later step into `items`. A failure of an earlier step stays.
fn merge_item(items: &mut Vec<ReportItem>, later: ReportItem) {
    let known = items
        .iter_mut()
        .find(|item| (item.kind, &item.name) == (later.kind, &later.name));
    match known {
        None => items.push(later),
        Some(item) if item.status.is_loss() => {}
        // the status from locking is more informative than `present` in the store
        Some(item) if later.status == ItemStatus::Present => {
            item.bytes = later.bytes.or(item.bytes)
        }
        Some(item) => *item = later,
    }
}

// The day on which each item began to fail, in the store, so that the report of a scheduled job can
// name it.

/// The path of the file in the store. The days are not in the lock, because two runs with the same
/// result must give the same lock.
const FAILING: &str = ".landfall/failing";
/// The number of days after which an item that no run handles is removed from the record.
const KEPT_DAYS: i64 = 30;

/// An item that failed or was missing in the last run that handled it.
#[derive(Serialize, Deserialize)]
struct FailingItem {
    kind: EntryKind,
    name: String,
    /// The day of the first run in which it failed, `YYYY-MM-DD`.
    since: String,
    /// The day of the last run in which it failed.
    last: String,
}

#[derive(Serialize, Deserialize)]
struct FailingFile {
    version: u32,
    items: Vec<FailingItem>,
}

/// Adds to the reason of each failed or missing item the day on which the item began to fail, and
/// records that day in the store. An item that succeeds is removed from the record. A recorded item
/// that is not in `items` stays for [`KEPT_DAYS`]: jobs with other manifests may share the store.
fn mark_failing(disk: &DiskStore, items: &mut [ReportItem], today: Date) -> Result<(), WriteError> {
    disk.edit(FAILING, |old| {
        // a damaged or newer file counts as empty: only the message depends on it
        let recorded = serde_json::from_slice::<FailingFile>(old)
            .ok()
            .filter(|recorded| recorded.version == 1);
        let old_items = recorded.map(|recorded| recorded.items).unwrap_or_default();
        let oldest = today.saturating_sub(KEPT_DAYS.days()).to_string();
        let mut failing: BTreeMap<(EntryKind, String), FailingItem> = old_items
            .into_iter()
            .filter(|one| one.last >= oldest)
            .map(|one| ((one.kind, one.name.clone()), one))
            .collect();
        for item in items.iter_mut() {
            let key = (item.kind, item.name.clone());
            if !item.status.is_loss() {
                failing.remove(&key);
                continue;
            }
            let record = failing.entry(key).or_insert_with(|| FailingItem {
                kind: item.kind,
                name: item.name.clone(),
                since: today.to_string(),
                last: String::new(),
            });
            record.last = today.to_string();
            let why = item.reason.take().unwrap_or_else(|| "it failed".into());
            item.reason = Some(format!("{why} (failing since {})", record.since));
        }
        // a store without failures does not get the file
        if failing.is_empty() && old.is_empty() {
            return Vec::new();
        }
        let mut bytes = serde_json::to_vec_pretty(&FailingFile {
            version: 1,
            items: failing.into_values().collect(),
        })
        .unwrap_or_default();
        bytes.push(b'\n');
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use landfall_item::LockedGitRepository;

    #[test]
    fn a_receipt_without_a_git_repository_is_not_a_complete_delivery() {
        let repository = LockedGitRepository::without_refs("https://h/a");
        let name = repository.name.clone();
        let lock = Lock {
            version: 1,
            git: vec![repository],
            ..Lock::default()
        };
        for (pushed, has_all) in [
            (Some(BTreeSet::new()), false),
            (Some(BTreeSet::from([name])), true),
            (None, true),
        ] {
            let base = RefreshBase {
                base: DeltaBase::lock(&lock),
                complete_lock: Some(lock.fingerprint()),
                pushed,
            };
            assert_eq!(base.has_all(&lock), has_all);
        }
    }

    fn item(name: &str, status: ItemStatus) -> ReportItem {
        ReportItem::new(EntryKind::Image, name.into(), status, Some("404".into()))
    }

    #[test]
    fn the_first_day_of_a_failure_is_named_until_the_item_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let reason = |name, status, day| {
            let mut items = [item(name, status)];
            mark_failing(&disk, &mut items, date(2026, 11, day)).unwrap();
            items[0].reason.clone().unwrap()
        };
        let first = "404 (failing since 2026-11-01)";
        assert_eq!(reason("a:1", ItemStatus::Failed, 1), first);
        // a job with another manifest, which does not list `a:1`
        let second = "404 (failing since 2026-11-02)";
        assert_eq!(reason("b:1", ItemStatus::Failed, 2), second);
        assert_eq!(reason("a:1", ItemStatus::Missing, 9), first);
        assert_eq!(reason("a:1", ItemStatus::Done, 10), "404");
        assert_eq!(reason("b:1", ItemStatus::Failed, 10), second);
        assert_eq!(
            reason("a:1", ItemStatus::Failed, 11),
            "404 (failing since 2026-11-11)"
        );
    }

    #[test]
    fn an_item_that_no_run_handles_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(dir.path()).unwrap();
        let recorded = |name, month, day| {
            let mut items = [item(name, ItemStatus::Failed)];
            mark_failing(&disk, &mut items, date(2026, month, day)).unwrap();
            let recorded = std::fs::read_to_string(dir.path().join(FAILING)).unwrap();
            let recorded: FailingFile = serde_json::from_str(&recorded).unwrap();
            let names = recorded.items.into_iter().map(|one| one.name);
            names.collect::<Vec<_>>()
        };
        assert_eq!(recorded("a:1", 1, 1), ["a:1"]);
        assert_eq!(recorded("b:1", 1, 31), ["a:1", "b:1"]);
        assert_eq!(recorded("b:1", 2, 1), ["b:1"]);
    }
}
