//! The state that all deliveries of a push share: the registry, the source, the upload slots, and
//! facts about the registry.

use super::plan::project;
use super::state::PushOptions;
use landfall_content::registry::{self, RegistrySession, SparseRefusal, is_quota_error};
use landfall_content::{LockEntry, PartSource, TransferError, TransferSlots, read_part};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::ChartName;
use landfall_item::lockfile::referrer_item;
use landfall_model::config::{IndexPolicy, ReferrerPolicy};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem, TransferSide};
use landfall_model::{Descriptor, Digest, Limits, Manifest, from_json, locked, media_type};
use landfall_signature::{RuleSubject, SignatureFormat, SignaturePolicy};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// A lock that is held while a manifest is written. After that, its value says whether the registry
/// lists the manifest as a referrer.
type ManifestTurn = Arc<tokio::sync::Mutex<Option<bool>>>;

/// The repositories that have a blob, locked by the delivery that uploads it.
type BlobLocations = Arc<tokio::sync::Mutex<Vec<BlobLocation>>>;

/// A repository that has a blob.
pub(super) struct BlobLocation {
    pub(super) repository: Arc<str>,
    /// Whether the blob was uploaded, mounted or looked up in this run. Otherwise the repository is
    /// assumed to have it, because the tag of an item with this blob is right.
    is_sure: bool,
    /// Whether only a report of the registry says so, which may be outdated.
    pub(super) is_reported: bool,
}

impl BlobLocation {
    /// A repository where the blob was uploaded, mounted or looked up. `is_reported` is set if it
    /// was only looked up.
    pub(super) fn sure(repository: &Arc<str>, is_reported: bool) -> BlobLocation {
        BlobLocation {
            repository: repository.clone(),
            is_sure: true,
            is_reported,
        }
    }
}

/// The state that all deliveries of a push share.
pub(super) struct Uploader {
    pub(super) session: Arc<RegistrySession>,
    pub(super) source: Arc<dyn PartSource>,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) limits: Limits,
    /// Whether nothing is written to the registry.
    pub(super) dry_run: bool,
    /// Limits the uploads that run at once.
    pub(super) slots: TransferSlots,
    /// What to do if the registry refuses an index with missing children.
    pub(super) index: IndexPolicy,
    /// The indexes that a repository was proven to refuse for their missing children.
    pub(super) sparse_refusals: Mutex<HashSet<(String, Digest)>>,
    /// What to do with referrers that the registry refuses.
    referrers: ReferrerPolicy,
    /// The rules of the site: referrers of items that they match are required.
    demanded: SignaturePolicy,
    /// The referrers that were not delivered, by name.
    lost_referrers: Mutex<BTreeMap<String, ReportItem>>,
    /// Blobs of items with lost referrers. The registry may delete them, since no manifest names
    /// them, so they are not in the receipt.
    lost_blobs: Mutex<HashSet<Digest>>,
    /// The types of manifests that the registry refused.
    pub(super) refused_types: Mutex<BTreeSet<RefusedType>>,
    /// Whether tags of referrers may be moved from another digest.
    pub(super) move_tags: bool,
    /// Whether the parts of present images were looked up one by one, not only their tags.
    rechecked: bool,
    /// Pairs of repositories, source and target, between which the registry has refused a mount.
    refused_mounts: Mutex<HashSet<(Arc<str>, Arc<str>)>>,
    /// The turns to write a manifest, by repository and reference.
    turns: Mutex<HashMap<(String, String), ManifestTurn>>,
    /// The first item whose content turned out damaged, if damage stops the other items.
    damaged: Mutex<Option<String>>,
    /// Whether damaged content stops the other items.
    pub(super) stops_at_damage: bool,
    /// Projects whose quota is used up, each with the first item that was refused for this reason.
    full: Mutex<BTreeMap<String, String>>,
    /// The repositories that are known to have each blob.
    locations: Mutex<HashMap<Digest, BlobLocations>>,
}

impl Uploader {
    pub(super) fn new(
        session: Arc<RegistrySession>,
        source: Arc<dyn PartSource>,
        progress: Arc<dyn Progress>,
        limits: Limits,
        options: &PushOptions,
        demanded: SignaturePolicy,
    ) -> Uploader {
        Uploader {
            session,
            source,
            progress,
            limits,
            dry_run: options.dry_run,
            slots: TransferSlots::for_uploads(limits.jobs),
            index: options.index,
            sparse_refusals: Mutex::default(),
            referrers: options.referrers,
            demanded,
            lost_referrers: Mutex::default(),
            lost_blobs: Mutex::default(),
            refused_types: Mutex::default(),
            move_tags: options.move_tags,
            rechecked: options.recheck,
            refused_mounts: Mutex::default(),
            turns: Mutex::default(),
            damaged: Mutex::default(),
            stops_at_damage: options.stop_at_damage,
            full: Mutex::default(),
            locations: Mutex::default(),
        }
    }

    /// The repositories that are known to have a blob. The holder of the lock may upload it.
    pub(super) fn blob_locations(&self, digest: &Digest) -> BlobLocations {
        let mut locations = locked(&self.locations);
        locations.entry(digest.clone()).or_default().clone()
    }

    /// Forgets a turn, unless another delivery holds it or waits for it.
    pub(super) fn forget_manifest_turn(&self, repository: &str, reference: &str) {
        let mut turns = locked(&self.turns);
        let key = (repository.to_owned(), reference.to_owned());
        // if the count is 1, only the map has the turn, and nobody can get it while the map is
        // locked
        if turns
            .get(&key)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(&key);
        }
    }

    /// The turn to write the manifest at a tag or digest.
    pub(super) fn manifest_turn(&self, repository: &str, reference: &str) -> ManifestTurn {
        let mut turns = locked(&self.turns);
        turns
            .entry((repository.to_owned(), reference.to_owned()))
            .or_default()
            .clone()
    }

    /// Whether the registry has refused to mount a blob of the repository `from` in `to`.
    pub(super) fn refuses_mount(&self, from: &Arc<str>, to: &Arc<str>) -> bool {
        locked(&self.refused_mounts).contains(&(from.clone(), to.clone()))
    }

    pub(super) fn note_refused_mount(&self, from: &Arc<str>, to: &Arc<str>) {
        locked(&self.refused_mounts).insert((from.clone(), to.clone()));
    }

    /// Notes that `repository` has all blobs of an entry: they can be mounted from there.
    pub(super) async fn note_present_entry(&self, entry: &LockEntry, repository: &str) {
        let repository: Arc<str> = repository.into();
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            let location = BlobLocation {
                is_sure: self.rechecked,
                ..BlobLocation::sure(&repository, false)
            };
            self.blob_locations(&part.descriptor.digest)
                .lock()
                .await
                .push(location);
        }
    }

    /// Notes that a look-up found the blob in `repository`: it can be mounted from there.
    pub(super) async fn note_present_blob(&self, digest: &Digest, repository: &Arc<str>) {
        self.blob_locations(digest)
            .lock()
            .await
            .push(BlobLocation::sure(repository, true));
    }

    /// For each blob, a repository that surely has it, for the receipt. Forgets all locations.
    pub(super) fn take_blob_locations(&self) -> BTreeMap<Digest, String> {
        let mut sure = BTreeMap::new();
        let lost = std::mem::take(&mut *locked(&self.lost_blobs));
        for (digest, locations) in locked(&self.locations).drain() {
            // all deliveries have ended, so the lock is free
            let Ok(locations) = locations.try_lock() else {
                continue;
            };
            if let Some(location) = locations.iter().find(|location| location.is_sure)
                && !lost.contains(&digest)
            {
                sure.insert(digest, location.repository.to_string());
            }
        }
        sure
    }

    /// Whether an entry gets its tag only after this referrer was delivered: the options say so, or
    /// a rule of the site verifies the entry, and the referrer may be a signature.
    pub(super) async fn requires_referrer(&self, entry: &LockEntry, referrer: &Descriptor) -> bool {
        let subject = match entry.kind {
            EntryKind::Image => entry.name.parse().ok().map(RuleSubject::Image),
            EntryKind::Chart => ChartName::try_from(entry.name.clone())
                .ok()
                .map(|name| name.rule_subject()),
            _ => None,
        };
        self.referrers == ReferrerPolicy::Required
            || subject.is_some_and(|subject| self.demanded.applies_to(subject))
                && self.may_be_signature(entry, &referrer.digest).await
    }

    /// Whether a referrer may be a signature or an attestation, by the types of its layers. An
    /// unreadable one may be.
    async fn may_be_signature(&self, entry: &LockEntry, digest: &Digest) -> bool {
        let mut manifests = entry.parts.iter().filter(|part| part.is_manifest());
        let Some(part) = manifests.find(|part| part.descriptor.digest == *digest) else {
            return true;
        };
        let Ok(bytes) = read_part(&*self.source, part).await else {
            return true;
        };
        match Manifest::parse(&bytes, None) {
            Ok((Manifest::Image { layers, .. }, _)) => layers
                .iter()
                .any(|layer| SignatureFormat::of(&layer.media_type).is_some()),
            _ => true,
        }
    }

    /// Notes that a referrer of `entry` was not delivered, but the entry itself was. `blobs` are
    /// those that perhaps only this referrer needs.
    pub(super) fn note_lost_referrer(
        &self,
        entry: &LockEntry,
        referrer: &Descriptor,
        error: &TransferError,
        blobs: &BTreeSet<Digest>,
    ) {
        let reason = format!("{}: {error}", error.side);
        let item = referrer_item(&entry.name, referrer, ItemStatus::Failed, reason);
        let mut lost = locked(&self.lost_referrers);
        lost.entry(item.name.clone()).or_insert(item);
        drop(lost);
        locked(&self.lost_blobs).extend(blobs.iter().cloned());
    }

    /// The referrers that were not delivered, as failed items.
    pub(super) fn take_lost_referrers(&self) -> Vec<ReportItem> {
        std::mem::take(&mut *locked(&self.lost_referrers))
            .into_values()
            .collect()
    }

    /// Notes that the content of the item `name` turned out damaged.
    pub(super) fn note_damaged_content(&self, name: &str) {
        if self.stops_at_damage {
            locked(&self.damaged).get_or_insert_with(|| name.to_owned());
        }
    }

    /// Fails if damaged content stops the deliveries that are not made yet.
    pub(super) fn check_content_sound(&self) -> Result<(), TransferError> {
        let damaged = locked(&self.damaged);
        let Some(first) = &*damaged else {
            return Ok(());
        };
        let message = format!(
            "not sent: the content of {first} is damaged; --allow-partial sends the intact \
             items, and `landfall verify` lists the damaged content"
        );
        Err(not_delivered(message))
    }

    /// Reports the types of manifests that the registry refused, all in one line.
    pub(super) fn note_refused_types(&self) {
        let types = locked(&self.refused_types);
        if let Some(note) = refused_types_note(self.session.host(), &types) {
            self.progress.note(&note);
        }
    }

    /// Notes that the quota of the project of `repository` is used up, if `error` says so.
    pub(super) fn note_quota_error(&self, error: &TransferError, repository: &str, item: &str) {
        if error.side == TransferSide::Destination
            && is_quota_error(error.why.kind, &error.why.codes)
        {
            locked(&self.full)
                .entry(project(repository).to_owned())
                .or_insert_with(|| item.to_owned());
        }
    }

    /// Fails if the quota of the project of `repository` is used up: the registry would accept the
    /// blobs and refuse their manifests.
    pub(super) fn check_quota(&self, repository: &str) -> Result<(), TransferError> {
        let full = locked(&self.full);
        let Some(first) = full.get(project(repository)) else {
            return Ok(());
        };
        let message = format!(
            "not sent: the quota of '{}' is used up, as the registry answered for {first}; raise \
             it and push again",
            project(repository)
        );
        Err(not_delivered(message))
    }
}

/// What the refusal of an index says about its children in `absent`.
pub(super) fn sparse_refusal(error: &TransferError, absent: &[Digest]) -> SparseRefusal {
    match error.side {
        TransferSide::Destination => SparseRefusal::of(&error.why, absent),
        _ => SparseRefusal::Unrelated,
    }
}

/// Whether the registry may have refused a manifest only because another client delivers the same
/// manifest at the same time.
pub(super) fn may_be_push_race(error: &TransferError) -> bool {
    error.side == TransferSide::Destination && registry::may_be_push_race(&error.why)
}

/// Whether the content of a source is damaged. A source that is read over the network may also
/// fail to respond.
pub(super) fn is_damage(error: &TransferError) -> bool {
    let is_unread = matches!(
        error.why.kind,
        ErrorKind::Network | ErrorKind::GivenUp | ErrorKind::RetryAfter(_) | ErrorKind::Denied
    );
    error.side == TransferSide::Source && error.why.status.is_none() && !is_unread
}

/// Fails if `manifest` names one of the blobs that could not be delivered.
pub(super) fn check_blobs(
    manifest: &[u8],
    failed_blobs: &BTreeMap<Digest, TransferError>,
) -> Result<(), TransferError> {
    let text = String::from_utf8_lossy(manifest);
    let failed = failed_blobs
        .iter()
        .find(|(digest, _)| text.contains(&digest.hex()));
    failed.map_or(Ok(()), |(_, error)| Err(error.clone()))
}

/// The type of a manifest that the registry refuses, perhaps for its type; `None` for images and
/// for refusals with another cause.
pub(super) fn refused_type(error: &HttpError, manifest: &[u8]) -> Option<RefusedType> {
    // 404 and 405 are the answers of registries that do not route such a request at all
    let may_be_type = matches!(error.status, Some(400 | 404 | 405 | 406 | 415 | 422));
    if !may_be_type || is_quota_error(error.kind, &error.codes) {
        return None;
    }
    let Ok((Manifest::Image { artifact_type, .. }, _)) = Manifest::parse(manifest, None) else {
        return None;
    };
    let document: Option<serde_json::Value> = from_json(manifest).ok();
    let has_subject = document.is_some_and(|document| document.get("subject").is_some());
    (has_subject || !media_type::is_image_config(&artifact_type)).then_some(RefusedType {
        has_subject,
        artifact_type,
    })
}

/// A type of manifests that a registry refused.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RefusedType {
    /// Whether the manifest has a `subject`, which may be the cause.
    pub(super) has_subject: bool,
    pub(super) artifact_type: String,
}

/// The error of an item that the registry cannot get as it is.
pub(super) fn not_delivered(message: impl Into<String>) -> TransferError {
    TransferError::new(TransferSide::Destination, ErrorKind::Invalid, message)
}

/// The line about the types that the registry `host` refused, and what to do; `None` if it refused
/// none.
pub(super) fn refused_types_note(host: &str, types: &BTreeSet<RefusedType>) -> Option<String> {
    let names = |has_subject| {
        let names = types.iter().filter(|one| one.has_subject == has_subject);
        let names = names.map(|one| one.artifact_type.as_str());
        names.collect::<Vec<&str>>().join(", ")
    };
    let (artifacts, referrers) = (names(false), names(true));
    let mut refused = Vec::new();
    let mut flags = Vec::new();
    if !artifacts.is_empty() {
        refused.push(format!("artifacts of the types {artifacts}"));
        flags.push("--skip-kinds");
    }
    if !referrers.is_empty() {
        refused.push(format!("manifests with `subject` of the types {referrers}"));
        flags.push("--referrers skip");
    }
    (!refused.is_empty()).then(|| {
        format!(
            "note: {host} may not accept {}: allow them there, use `landfall serve`, which has all \
             kinds, or leave them out with {}; another type would change the digest",
            refused.join(" and "),
            flags.join(" and ")
        )
    })
}

/// Whether a manifest contains URLs of foreign layers.
pub(super) fn has_foreign_urls(manifest: &[u8]) -> bool {
    let document: Option<serde_json::Value> = from_json(manifest).ok();
    let layers = document
        .as_ref()
        .and_then(|document| document.get("layers")?.as_array());
    layers
        .into_iter()
        .flatten()
        .any(|layer| layer.get("urls").is_some())
}
