//! Delivers the blobs of an entry. Each is uploaded to a repository once per run.

use super::refusal::is_damage;
use super::uploader::{BlobLocation, Uploader};
use landfall_content::registry::{RegistrySink, is_quota_error};
use landfall_content::{EntryPart, LockEntry, Transfer, TransferError};
use landfall_http::{Activity, ErrorKind};
use landfall_model::Digest;
use landfall_model::report::TransferSide;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio::task::{JoinError, JoinSet};

impl Uploader {
    /// Delivers the blobs of an entry to `repository`, except those that only its referrers need.
    /// Returns those that could not be read and that only attestations in its index need.
    pub(super) async fn deliver_blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<BTreeMap<Digest, TransferError>, TransferError> {
        let own = |digest: &Digest| !entry.referrer_blobs.contains(digest);
        let mut tasks = self.start_blobs(entry, repository, own);
        let mut failed = BTreeMap::new();
        let attestations = OnceCell::new();
        while let Some(done) = tasks.join_next().await {
            let (digest, delivered) = done.map_err(|error| lost_task(&error))?;
            let Err(error) = delivered else {
                continue;
            };
            let is_damage = self.stops_at_damage && is_damage(&error);
            if error.side != TransferSide::Source || is_damage {
                return Err(error);
            }
            let attestations = attestations.get_or_init(|| self.attestations(entry)).await;
            if !attestations.contains(&digest) {
                return Err(error);
            }
            failed.insert(digest, error);
        }
        Ok(failed)
    }

    /// Delivers the blobs that only the referrers of an entry need. Returns those that failed.
    pub(super) async fn deliver_referrer_blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<BTreeMap<Digest, TransferError>, TransferError> {
        let of_referrers = |digest: &Digest| entry.referrer_blobs.contains(digest);
        let mut tasks = self.start_blobs(entry, repository, of_referrers);
        let mut failed = BTreeMap::new();
        while let Some(done) = tasks.join_next().await {
            if let (digest, Err(error)) = done.map_err(|error| lost_task(&error))? {
                failed.insert(digest, error);
            }
        }
        Ok(failed)
    }

    /// Starts to deliver the blobs of an entry that `is_wanted` selects.
    fn start_blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        is_wanted: impl Fn(&Digest) -> bool,
    ) -> JoinSet<(Digest, Result<(), TransferError>)> {
        let repository: Arc<str> = repository.into();
        let mut tasks = JoinSet::new();
        let mut blobs: Vec<&EntryPart> = entry
            .parts
            .iter()
            .filter(|part| !part.is_manifest() && is_wanted(&part.descriptor.digest))
            .collect();
        // the biggest first, and equal ones next to each other, so that duplicates can be removed
        blobs.sort_by_key(|part| (Reverse(part.descriptor.size), &part.descriptor.digest));
        blobs.dedup_by_key(|part| &part.descriptor.digest);
        for part in blobs {
            let uploader = self.clone();
            let part = part.clone();
            let repository = repository.clone();
            let item = entry.name.clone();
            tasks.spawn(async move {
                let delivered = uploader.deliver_blob(&item, &part, &repository).await;
                (part.descriptor.digest, delivered)
            });
        }
        tasks
    }

    /// Like [`Uploader::deliver_blobs`], but forgets that `repository` has the blobs, so that each
    /// is looked up again.
    pub(super) async fn redeliver_blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<(), TransferError> {
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            let known = self.blob_locations(&part.descriptor.digest);
            let mut locations = known.lock().await;
            let before = locations.len();
            locations.retain(|location| *location.repository != *repository);
            if locations.is_empty() && before > 0 {
                // the total counts only the first upload of the blob, and the next may be a second
                self.progress.more(part.descriptor.size);
            }
        }
        self.deliver_blobs(entry, repository).await.map(drop)
    }

    /// Delivers one blob of `item` to `repository`: mounts it if another repository has it. If no
    /// other repository has it or the mount is refused, uploads it unless it is present. Only
    /// one delivery at a time uploads the blob, but several may mount it at once.
    async fn deliver_blob(
        &self,
        item: &str,
        part: &EntryPart,
        repository: &Arc<str>,
    ) -> Result<(), TransferError> {
        let known = self.blob_locations(&part.descriptor.digest);
        // Locked before the slot is acquired: a delivery that waits for another delivery's upload
        // must not hold a slot meanwhile.
        let mut turn = known.lock().await;
        let is_delivered =
            |locations: &[BlobLocation]| locations.iter().any(|one| one.repository == *repository);
        if is_delivered(&turn) {
            return Ok(());
        }
        let mut from = turn.first().map(|location| location.repository.clone());
        let is_copy = from.is_some();
        if let Some(other) = from
            .clone()
            .filter(|from| !self.refuses_mount(from, repository))
        {
            // a mount is one short request, so other deliveries need not wait for it
            drop(turn);
            if self.mounted(item, part, repository, &other).await? {
                known.lock().await.push(BlobLocation::sure(repository));
                return Ok(());
            }
            from = None;
            turn = known.lock().await;
            // meanwhile, a delivery of another tag may have uploaded it
            if is_delivered(&turn) {
                return Ok(());
            }
        }
        let host: Arc<str> = self.source.host(part).into();
        let slot = Arc::new(self.slots.acquire(part.descriptor.size, &host).await);
        self.check_quota(repository)?;
        let sink = RegistrySink::new(self.session.clone(), repository.clone(), from);
        let source = self.source.clone();
        let progress = self.progress.clone();
        if is_copy {
            // the total counts each blob once
            progress.more(part.descriptor.size);
        }
        let transfer = Transfer {
            source,
            sink: Arc::new(sink),
            limits: self.limits,
            progress,
            // a registry receives blobs only through requests, which count themselves
            activity: Activity::default(),
        };
        // The slot is held until the error is recorded, so that the next upload knows that the
        // quota is used up.
        transfer
            .run(part, slot.clone())
            .await
            .inspect_err(|error| self.note_quota_error(error, repository, item))?;
        drop(slot);
        turn.push(BlobLocation::sure(repository));
        Ok(())
    }

    /// Mounts the blob from `other`, and returns whether the registry did so. After a refusal,
    /// further mounts between the two repositories are requested only by the delivery that holds
    /// the blob's lock, since each request may become an upload.
    async fn mounted(
        &self,
        item: &str,
        part: &EntryPart,
        repository: &Arc<str>,
        other: &Arc<str>,
    ) -> Result<bool, TransferError> {
        // a mount is a single request, so it gets the next slot, as if it were the biggest blob
        let _slot = self.slots.acquire(u64::MAX, &Arc::default()).await;
        self.check_quota(repository)?;
        match self
            .session
            .mount(repository, &part.descriptor.digest, other)
            .await
        {
            Ok(true) => Ok(true),
            Err(error) if is_quota_error(error.kind, &error.codes) => {
                let error = TransferError::destination(error);
                self.note_quota_error(&error, repository, item);
                Err(error)
            }
            Ok(false) | Err(_) => {
                self.note_refused_mount(other, repository);
                Ok(false)
            }
        }
    }
}

fn lost_task(error: &JoinError) -> TransferError {
    let message = format!("a transfer ended without a result: {error}");
    TransferError::new(TransferSide::Destination, ErrorKind::Local, message)
}
