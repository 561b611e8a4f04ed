//! Blobs of a delivery: each is brought to a repository once in a run.

use super::uploader::{BlobLocation, Uploader};
use landfall_content::registry::{RegistrySink, is_quota_error};
use landfall_content::{EntryPart, LockEntry, Transfer, TransferError};
use landfall_http::ErrorKind;
use landfall_model::report::TransferSide;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Uploader {
    /// Brings the blobs of an entry to `repository`.
    pub(super) async fn blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<(), TransferError> {
        let repository: Arc<str> = repository.into();
        let mut tasks = tokio::task::JoinSet::new();
        let mut blobs: Vec<&EntryPart> = entry
            .parts
            .iter()
            .filter(|part| !part.is_manifest())
            .collect();
        // the biggest first; the same ones side by side
        blobs.sort_by_key(|part| (Reverse(part.descriptor.size), &part.descriptor.digest));
        blobs.dedup_by_key(|part| &part.descriptor.digest);
        for part in blobs {
            let (uploader, part, repository) = (self.clone(), part.clone(), repository.clone());
            let item = entry.name.clone();
            tasks.spawn(async move { uploader.blob(&item, &part, &repository).await });
        }
        while let Some(done) = tasks.join_next().await {
            let local = |message: String| {
                TransferError::new(TransferSide::Destination, ErrorKind::Local, message)
            };
            done.map_err(|error| local(format!("a transfer ended without a result: {error}")))??;
        }
        Ok(())
    }

    /// Brings the blobs of an entry to `repository`, whatever is known of them: each is asked for
    /// again.
    pub(super) async fn blobs_again(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<(), TransferError> {
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            let known = self.known(&part.descriptor.digest);
            let mut places = known.lock().await;
            let before = places.len();
            places.retain(|place| *place.repository != *repository);
            if places.is_empty() && before > 0 {
                // it was counted when it was brought
                self.progress.more(part.descriptor.size);
            }
        }
        self.blobs(entry, repository).await
    }

    /// Brings one blob of `item` to `repository`: mounted where the registry has it in another
    /// repository, else sent unless it is there. It is sent by one at a time, mounted by any
    /// number.
    async fn blob(
        &self,
        item: &str,
        part: &EntryPart,
        repository: &Arc<str>,
    ) -> Result<(), TransferError> {
        let known = self.known(&part.descriptor.digest);
        // the turn comes before the slot: whoever waits for another's upload holds no slot
        let mut turn = known.lock().await;
        if turn.iter().any(|one| one.repository == *repository) {
            return Ok(());
        }
        let mut from = turn.first().map(|place| place.repository.clone());
        let is_copy = from.is_some();
        if let Some(other) = from
            .as_deref()
            .filter(|_| !self.refuses_mounts.load(Ordering::Relaxed))
        {
            drop(turn);
            if self.mounted(item, part, repository, other).await? {
                known.lock().await.push(BlobLocation::sure(repository));
                return Ok(());
            }
            from = None;
            turn = known.lock().await;
        }
        let host: Arc<str> = self.source.host(part).into();
        let slot = Arc::new(self.slots.acquire(part.descriptor.size, &host).await);
        self.has_room(repository)?;
        let sink = RegistrySink::new(self.session.clone(), repository.clone(), from);
        let (source, progress) = (self.source.clone(), self.progress.clone());
        if is_copy {
            // the total has each blob once
            progress.more(part.descriptor.size);
        }
        let transfer = Transfer {
            source,
            sink: Arc::new(sink),
            limits: self.limits,
            progress,
        };
        // who gets the slot next must know of a quota
        transfer
            .run(part, slot)
            .await
            .inspect_err(|error| self.note_quota(error, repository, item))?;
        turn.push(BlobLocation::sure(repository));
        Ok(())
    }

    /// Whether the registry mounted the blob from `other`. Where it did not, mounts wait for their
    /// turn, as they may end in uploads.
    async fn mounted(
        &self,
        item: &str,
        part: &EntryPart,
        repository: &str,
        other: &str,
    ) -> Result<bool, TransferError> {
        // a mount takes no time
        let _slot = self.slots.acquire(u64::MAX, &Arc::default()).await;
        self.has_room(repository)?;
        match self
            .session
            .mount(repository, &part.descriptor.digest, other)
            .await
        {
            Ok(true) => Ok(true),
            Err(error) if is_quota_error(error.kind, &error.codes) => {
                let error = TransferError::destination(error);
                self.note_quota(&error, repository, item);
                Err(error)
            }
            Ok(false) | Err(_) => {
                self.refuses_mounts.store(true, Ordering::Relaxed);
                Ok(false)
            }
        }
    }
}
