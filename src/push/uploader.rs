//! What all deliveries of a run share: the registry, the source, whose turn it is, and what was
//! learned.

use super::names::project;
use super::options::PushOptions;
use super::upload_slots::UploadSlots;
use landfall_content::registry::{RegistrySession, is_quota_error};
use landfall_content::{LockEntry, PartSource, TransferError};
use landfall_http::ErrorKind;
use landfall_model::config::IndexPolicy;
use landfall_model::report::{Progress, TransferSide};
use landfall_model::{Digest, Limits};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Held while a manifest is written; says of one that was whether the registry lists it as a
/// referrer.
type ManifestTurn = Arc<tokio::sync::Mutex<Option<bool>>>;

/// The repositories in which a digest stands; held by whoever brings it to one.
type BlobLocations = Arc<tokio::sync::Mutex<Vec<BlobLocation>>>;

/// A repository in which a digest stands.
pub(super) struct BlobLocation {
    pub(super) repository: Arc<str>,
    /// It was sent there, mounted or asked for in this run, and does not just follow from a tag.
    is_sure: bool,
}

impl BlobLocation {
    /// Where it was sent, mounted or asked for.
    pub(super) fn sure(repository: &Arc<str>) -> BlobLocation {
        BlobLocation {
            repository: repository.clone(),
            is_sure: true,
        }
    }
}

/// What all deliveries of a run share.
pub(super) struct Uploader {
    pub(super) session: Arc<RegistrySession>,
    pub(super) source: Arc<dyn PartSource>,
    pub(super) progress: Arc<dyn Progress>,
    /// Attempts at each blob, and how many at once.
    pub(super) limits: Limits,
    /// Uploads of blobs under way.
    pub(super) slots: UploadSlots,
    /// What to do where an index with missing children is refused.
    pub(super) index: IndexPolicy,
    /// The registry has refused an index with missing children.
    pub(super) refuses_sparse: AtomicBool,
    /// Whether a tag of cosign's may be taken away from another digest.
    pub(super) move_tags: bool,
    /// What stands at the registry was asked for blob by blob.
    rechecked: bool,
    /// The registry has refused a mount.
    pub(super) refuses_mounts: AtomicBool,
    /// Whose turn it is to write a manifest, by repository and reference.
    turns: Mutex<HashMap<(String, String), ManifestTurn>>,
    /// The item of which the content turned out damaged, where that stops all others.
    damaged: Mutex<Option<String>>,
    stops_at_damage: bool,
    /// Projects that have no room for more, and the item of which the registry said so.
    full: Mutex<BTreeMap<String, String>>,
    /// Where each digest is known to stand, and the turn to bring it there.
    known: Mutex<HashMap<Digest, BlobLocations>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Uploader {
    pub(super) fn new(
        session: Arc<RegistrySession>,
        source: Arc<dyn PartSource>,
        progress: Arc<dyn Progress>,
        limits: Limits,
        options: PushOptions,
    ) -> Uploader {
        Uploader {
            session,
            source,
            progress,
            limits,
            slots: UploadSlots::new(limits.jobs),
            index: options.index,
            refuses_sparse: AtomicBool::new(false),
            move_tags: options.move_tags,
            rechecked: options.recheck,
            refuses_mounts: AtomicBool::new(false),
            turns: Mutex::default(),
            damaged: Mutex::default(),
            stops_at_damage: options.stop_at_damage,
            full: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Where a digest is known to stand, and the turn to bring it there.
    pub(super) fn known(&self, digest: &Digest) -> BlobLocations {
        let mut known = locked(&self.known);
        known.entry(digest.clone()).or_default().clone()
    }

    /// Forgets what came of a turn, unless somebody waits for it or has it.
    pub(super) fn forget(&self, repository: &str, reference: &str) {
        let mut turns = locked(&self.turns);
        let key = (repository.to_owned(), reference.to_owned());
        if turns
            .get(&key)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(&key);
        }
    }

    /// The turn to write what stands at a tag or digest, and what came of the last one.
    pub(super) fn turn(&self, repository: &str, reference: &str) -> ManifestTurn {
        let mut turns = locked(&self.turns);
        turns
            .entry((repository.to_owned(), reference.to_owned()))
            .or_default()
            .clone()
    }

    /// The blobs of an entry that stands whole in `repository` can be mounted from there.
    pub(super) async fn stands(&self, entry: &LockEntry, repository: &str) {
        let repository: Arc<str> = repository.into();
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            let place = BlobLocation {
                is_sure: self.rechecked,
                ..BlobLocation::sure(&repository)
            };
            self.known(&part.descriptor.digest).lock().await.push(place);
        }
    }

    /// The blob was asked for in `repository`, and can be mounted from there.
    pub(super) async fn stands_in(&self, digest: &Digest, repository: &Arc<str>) {
        self.known(digest)
            .lock()
            .await
            .push(BlobLocation::sure(repository));
    }

    /// Where each digest surely stands, for the receipt. Nothing is known afterwards.
    pub(super) fn take_known(&self) -> BTreeMap<Digest, String> {
        let mut known = locked(&self.known);
        let first = |(digest, list): (Digest, BlobLocations)| {
            let list = list.try_lock().ok()?;
            let first = list.iter().find(|place| place.is_sure)?;
            Some((digest, first.repository.to_string()))
        };
        known.drain().filter_map(first).collect()
    }

    /// The content of the item `name` turned out damaged.
    pub(super) fn note_damage(&self, name: &str) {
        if self.stops_at_damage {
            locked(&self.damaged).get_or_insert_with(|| name.to_owned());
        }
    }

    /// Damage stops what is not delivered yet.
    pub(super) fn is_sound(&self) -> Result<(), TransferError> {
        let damaged = locked(&self.damaged);
        let Some(first) = &*damaged else {
            return Ok(());
        };
        let message = format!(
            "not sent: the content of {first} is damaged; --allow-partial sends what is whole, and `landfall verify` \
             tells what is not"
        );
        Err(TransferError::new(
            TransferSide::Destination,
            ErrorKind::Invalid,
            message,
        ))
    }

    /// Notes that the registry has no room for more in the project of `repository`, where it said
    /// so of `item`.
    pub(super) fn note_quota(&self, error: &TransferError, repository: &str, item: &str) {
        if error.side == TransferSide::Destination
            && is_quota_error(error.why.kind, &error.why.codes)
        {
            locked(&self.full)
                .entry(project(repository).to_owned())
                .or_insert_with(|| item.to_owned());
        }
    }

    /// A quota refusal is final for its project: what is whole there stays, and nothing more is
    /// tried.
    pub(super) fn has_room(&self, repository: &str) -> Result<(), TransferError> {
        let full = locked(&self.full);
        let Some(first) = full.get(project(repository)) else {
            return Ok(());
        };
        let message = format!(
            "not sent: '{}' has no room for more, as was said of {first}; raise its quota and run it again",
            project(repository)
        );
        Err(TransferError::new(
            TransferSide::Destination,
            ErrorKind::Invalid,
            message,
        ))
    }
}
