//! Makes one delivery: blobs, child manifests, index, referrers, and the tag last.

use super::plan::project;
use super::uploader::{
    BlobLocation, Uploader, check_blobs, has_foreign_urls, is_damage, may_be_push_race,
    refused_type, sparse_refusal,
};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_content::registry::{
    RegistrySink, SparseRefusal, is_immutable_tag_error, is_quota_error,
};
use landfall_content::{
    EntryPart, ListedAttestations, LockEntry, PartOrigin, Transfer, TransferError, TransferOutcome,
    read_part,
};
use landfall_http::{Activity, ErrorKind, RetryPolicy};
use landfall_model::config::IndexPolicy;
use landfall_model::report::{ItemStatus, TransferSide};
use landfall_model::{Descriptor, Digest, Manifest, locked, media_type, trim_index};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio::task::{JoinError, JoinSet};

/// The maximum number of manifests of one delivery that are put at the same time.
pub(super) const MANIFESTS_AT_ONCE: usize = 4;

impl Uploader {
    /// Delivers one entry to `repository:tag`. Returns the digest that the tag points to, and
    /// whether something was delivered. `tagged` is the digest that the tag points to if only
    /// referrers are missing: then the entry itself is not sent again.
    pub(super) async fn deliver(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        tag: &str,
        tagged: Option<Digest>,
    ) -> Result<(ItemStatus, Digest), TransferError> {
        let delivered = match tagged {
            Some(digest) => self
                .deliver_referrers(entry, repository)
                .await
                .map(|status| (status, digest)),
            None => match self.deliver_parts(entry, repository, tag).await {
                Ok((digest, false)) => self.check_stored(repository, tag).await.map(|()| digest),
                sent => sent.map(|(digest, _)| digest),
            }
            .map(|digest| (ItemStatus::Done, digest)),
        };
        if delivered.as_ref().is_err_and(is_damage) {
            self.note_damaged_content(&entry.name);
        }
        delivered.inspect_err(|error| self.note_quota_error(error, repository, &entry.name))
    }

    /// Delivers the referrers of an entry that `repository` has. The entry counts as present if
    /// some of them are refused again.
    async fn deliver_referrers(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<ItemStatus, TransferError> {
        self.check_content_sound()?;
        self.check_quota(repository)?;
        Ok(
            match self.attach_referrers(entry, repository, true).await? {
                0 => ItemStatus::Done,
                _ => ItemStatus::Present,
            },
        )
    }

    /// Puts the referrers of an entry with their blobs. Returns how many the registry refused.
    /// Unless `is_last`, a refusal that may be due to another client's push is an error.
    async fn attach_referrers(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        is_last: bool,
    ) -> Result<usize, TransferError> {
        let failed_blobs = self.deliver_referrer_blobs(entry, repository).await?;
        let lost = self.put_referrers(entry, repository, &failed_blobs).await?;
        let count = lost.len();
        for (referrer, error) in lost {
            if self.requires_referrer(entry, referrer).await
                || (!is_last && may_be_push_race(&error))
            {
                return Err(error);
            }
            self.note_quota_error(&error, repository, &entry.name);
            self.note_lost_referrer(entry, referrer, &error, &entry.referrer_blobs);
        }
        Ok(count)
    }

    /// Puts the blobs and manifests of an entry. Returns the digest that the tag points to, and
    /// whether the registry did more than report all blobs as present.
    pub(super) async fn deliver_parts(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        tag: &str,
    ) -> Result<(Digest, bool), TransferError> {
        self.check_content_sound()?;
        self.check_quota(repository)?;
        let (failed_blobs, is_any_sent) = self.deliver_blobs(entry, repository).await?;
        let delivered = self
            .put_manifests(entry, repository, tag, &failed_blobs, false)
            .await;
        if !delivered.as_ref().is_err_and(may_be_push_race) {
            return delivered.map(|digest| (digest, is_any_sent));
        }
        // Another client may be delivering to this repository at the same time: the registry may
        // have reported a blob that was not stored yet, or read a manifest while it was written.
        tokio::time::sleep(RetryPolicy::new(&self.limits).pause(1)).await;
        self.session.distrust_self_mounts();
        self.redeliver_blobs(entry, repository).await?;
        let delivered = self
            .put_manifests(entry, repository, tag, &failed_blobs, true)
            .await;
        delivered.map(|digest| (digest, true))
    }

    /// Checks that the registry has a tag that it accepted, after it reported all blobs as present.
    /// While docker-registry runs, it reports content that a garbage collection has removed, and
    /// does not store it again.
    async fn check_stored(&self, repository: &str, tag: &str) -> Result<(), TransferError> {
        let mut attempts = RetryPolicy::new(&self.limits).start();
        // an error says nothing about the tag: perhaps the account may only write
        while let Ok(None) = self.session.head_manifest(repository, tag, false).await {
            if attempts.wait_for_next().await {
                continue;
            }
            let message = format!(
                "{} reported all blobs of {repository}:{tag} as present and accepted its manifest, \
                 but does not have it: restart the registry, whose cache is probably outdated \
                 since a garbage collection, and push again",
                self.session.host()
            );
            let side = TransferSide::Destination;
            return Err(TransferError::new(side, ErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Puts the manifests of an entry whose blobs are present. Returns the digest that the tag
    /// points to. `failed_blobs` are blobs of attestations. With `is_last`, a referrer that may be
    /// refused because of another client's push is given up.
    async fn put_manifests(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        tag: &str,
        failed_blobs: &BTreeMap<Digest, TransferError>,
        is_last: bool,
    ) -> Result<Digest, TransferError> {
        let manifests: Vec<&EntryPart> = entry
            .parts
            .iter()
            .filter(|part| part.is_manifest() && part.descriptor.digest != entry.top.digest)
            .filter(|part| !matches!(part.origin, PartOrigin::Trimmed { .. }))
            .filter(|part| !entry.only_refers(&part.descriptor.digest))
            .collect();
        let (indexes, leaves): (Vec<&EntryPart>, Vec<&EntryPart>) = manifests
            .into_iter()
            .partition(|part| !media_type::is_image_manifest(&part.descriptor.media_type));
        let requests: Vec<_> = leaves
            .iter()
            .map(|part| self.try_child(part, repository, failed_blobs))
            .collect();
        let requests = futures_util::stream::iter(requests).buffer_unordered(MANIFESTS_AT_ONCE);
        // All of them end before errors are handled: one that is not polled meanwhile would hold
        // the lock of its manifest in the store, for which the reading of attestations waits.
        let results: Vec<_> = requests.collect().await;
        let attestations = OnceCell::new();
        let mut lost = None;
        for (child, result) in results {
            if let Err(error) = result {
                let attestations = attestations.get_or_init(|| self.attestations(entry)).await;
                self.lose_attestation(entry, attestations, child, error, is_last)
                    .await?;
                lost = Some(child);
            }
        }
        // The digest must stay that of the lock, so the index lists what is lost.
        let advice = |mut error: TransferError| {
            if let Some(child) = lost {
                let why = error.why.hint(&format!(
                    "; the index lists the attestation {}, which is not delivered: let the \
                     registry accept indexes with missing children",
                    child.digest
                ));
                error.why = why.into();
            }
            error
        };
        // Nested indexes follow their children, one by one in the order of the entry: a registry
        // refuses an index whose children are missing.
        for part in indexes {
            self.put_child(part, repository).await?;
        }
        if !entry.referrers.is_empty() {
            // The tag comes last, so that a tagged image always has its referrers.
            self.put_top(entry, repository, None)
                .await
                .map_err(advice)?;
            self.attach_referrers(entry, repository, is_last).await?;
        }
        // if another delivery has found damage meanwhile, this tag must not be set
        self.check_content_sound()?;
        self.put_top(entry, repository, Some(tag))
            .await
            .map_err(advice)
    }

    /// Puts a child of an index, unless one of its blobs failed.
    async fn try_child<'e>(
        &self,
        part: &'e EntryPart,
        repository: &str,
        failed_blobs: &BTreeMap<Digest, TransferError>,
    ) -> (&'e Descriptor, Result<(), TransferError>) {
        let put = async {
            if !failed_blobs.is_empty() {
                let bytes = read_part(&*self.source, part).await;
                let bytes = bytes.map_err(TransferError::source)?;
                check_blobs(&bytes, failed_blobs)?;
            }
            self.put_child(part, repository).await
        };
        (&part.descriptor, put.await)
    }

    /// Notes that a child of the entry's index is lost, if it is an attestation that may be lost.
    /// Otherwise returns the error.
    async fn lose_attestation(
        &self,
        entry: &LockEntry,
        attestations: &ListedAttestations,
        child: &Descriptor,
        error: TransferError,
        is_last: bool,
    ) -> Result<(), TransferError> {
        if !attestations.contains(&child.digest)
            || (self.stops_at_damage && is_damage(&error))
            || is_quota_error(error.why.kind, &error.why.codes)
            || (!is_last && may_be_push_race(&error))
            || self.requires_referrer(entry, child).await
        {
            return Err(error);
        }
        self.note_lost_referrer(entry, child, &error, attestations.blobs());
        Ok(())
    }

    /// The attestations that the index of an entry lists.
    pub(super) async fn attestations(&self, entry: &LockEntry) -> ListedAttestations {
        let mut manifests = BTreeMap::new();
        for part in entry.parts.iter().filter(|part| part.is_manifest()) {
            if let Ok(bytes) = read_part(&*self.source, part).await {
                manifests.insert(&part.descriptor.digest, bytes);
            }
        }
        ListedAttestations::of(entry, |one| Some(manifests.get(&one.digest)?.to_vec()))
    }
}

// Pushes the manifests of a delivery. Each is written once, and an index is replaced by its
// trimmed form if the registry refuses this index for its missing children.

impl Uploader {
    /// Puts a manifest by digest.
    pub(super) async fn put_child(
        &self,
        part: &EntryPart,
        repository: &str,
    ) -> Result<(), TransferError> {
        let bytes = read_part(&*self.source, part)
            .await
            .map_err(TransferError::source)?;
        let reference = part.descriptor.digest.to_string();
        self.put(repository, &reference, &part.descriptor.media_type, bytes)
            .await
            .map(drop)
    }

    /// Puts a manifest at a tag or digest. By digest, it is put only once per run, since some
    /// registries give wrong answers about a manifest that is being written again. Returns whether
    /// the registry lists the manifest as a referrer.
    pub(super) async fn put(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<bool, TransferError> {
        let turn = self.manifest_turn(repository, reference);
        let is_digest = reference.contains(':');
        let result = {
            let mut listed = turn.lock().await;
            match *listed {
                Some(listed) if is_digest => Ok(listed),
                _ => self
                    .put_unchecked(repository, reference, media_type, bytes)
                    .await
                    .inspect(|is_listed| *listed = Some(*is_listed)),
            }
        };
        drop(turn);
        if !is_digest {
            self.forget_manifest_turn(repository, reference);
        }
        result
    }

    async fn put_unchecked(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<bool, TransferError> {
        // docker-registry answers DIGEST_INVALID if one manifest is written to two repositories or
        // tags at the same time. So writes of one digest take turns, in all repositories.
        let content = Digest::sha256(&bytes).to_string();
        let turn = self.manifest_turn("", &content);
        let put = {
            let _turn = turn.lock().await;
            self.session
                .put_manifest(repository, reference, media_type, bytes.clone())
                .await
        };
        drop(turn);
        self.forget_manifest_turn("", &content);
        let mut error = match put {
            Ok(listed) => return Ok(listed),
            Err(error) => error,
        };
        if is_immutable_tag_error(error.kind, &error.codes) {
            // Another client may have set the immutable tag to this digest since it was looked up.
            // That is a success.
            let found = self
                .session
                .head_manifest(repository, reference, true)
                .await;
            if let Ok(Some(digest)) = found
                && digest.matches(&bytes)
            {
                return Ok(false);
            }
        }
        if has_foreign_urls(&bytes) {
            error = error.hint(
                "; it contains URLs of layers, which registries may refuse: docker-registry \
                 accepts those that validation.manifests.urls.allow in its configuration matches",
            );
        }
        if let Some(refused) = refused_type(&error, &bytes) {
            error = error.hint("; the registry may not accept its type");
            locked(&self.refused_types).insert(refused);
        }
        Err(TransferError::destination(error))
    }

    /// Puts the top manifest of an entry at `tag`, or by digest if `tag` is `None`. If the registry
    /// is proven to refuse this index for its missing children, the trimmed index is put instead.
    /// Returns the digest of the manifest that was put.
    pub(super) async fn put_top(
        &self,
        entry: &LockEntry,
        repository: &str,
        tag: Option<&str>,
    ) -> Result<Digest, TransferError> {
        let reference = |part: &EntryPart| {
            tag.map_or_else(|| part.descriptor.digest.to_string(), str::to_owned)
        };
        let top = top_part(entry);
        let bytes = read_part(&*self.source, top)
            .await
            .map_err(TransferError::source)?;
        let media_type = &top.descriptor.media_type;
        // without a trimmed form, no child is missing
        let Some((part, keep)) = trimmed_part(entry) else {
            self.put(repository, &reference(top), media_type, bytes)
                .await?;
            return Ok(top.descriptor.digest.clone());
        };
        let key = (repository.to_owned(), top.descriptor.digest.clone());
        let is_refused = locked(&self.sparse_refusals).contains(&key);
        if !is_refused {
            let at = reference(top);
            let put = self.put(repository, &at, media_type, bytes.clone()).await;
            let Err(error) = put else {
                return Ok(top.descriptor.digest.clone());
            };
            if self.index == IndexPolicy::Exact
                || !self
                    .is_refused_as_sparse(top, &bytes, keep, repository, &error)
                    .await
            {
                return Err(error);
            }
            locked(&self.sparse_refusals).insert(key);
        }
        let invalid =
            |message: String| TransferError::new(TransferSide::Source, ErrorKind::Invalid, message);
        // The rewriter points references to the trimmed digest that the lock records, so the bytes
        // must have this digest.
        let bytes = trim_index(&bytes, keep).map_err(|error| invalid(error.to_string()))?;
        if !part.descriptor.digest.matches(&bytes) {
            return Err(invalid(format!(
                "the trimmed index is not {}, as the lock says",
                part.descriptor.digest
            )));
        }
        self.put(repository, &reference(part), media_type, bytes.into())
            .await?;
        Ok(part.descriptor.digest.clone())
    }

    /// Whether `error`, with which the registry refused the index `top`, is about the children that
    /// the repository lacks: all except those in `present`. It is if the registry names one of
    /// them. Otherwise a probe decides: without a tag, the registry refuses the index again, and
    /// accepts it without the missing children. The probe concerns this index only.
    async fn is_refused_as_sparse(
        &self,
        top: &EntryPart,
        bytes: &Bytes,
        present: &BTreeSet<Digest>,
        repository: &str,
        error: &TransferError,
    ) -> bool {
        let absent = children_except(present, bytes);
        match sparse_refusal(error, &absent) {
            SparseRefusal::Stated => return true,
            SparseRefusal::Unrelated => return false,
            SparseRefusal::Possible => {}
        }
        let digest = top.descriptor.digest.to_string();
        let media_type = &top.descriptor.media_type;
        let again = self.put(repository, &digest, media_type, bytes.clone());
        match again.await {
            // the tag was the cause, or a moment
            Ok(_) => return false,
            Err(error) if sparse_refusal(&error, &absent) == SparseRefusal::Unrelated => {
                return false;
            }
            Err(_) => {}
        }
        let Ok(complete) = trim_index(bytes, present) else {
            return false;
        };
        let digest = Digest::sha256(&complete).to_string();
        self.put(repository, &digest, media_type, complete.into())
            .await
            .is_ok()
    }

    /// Returns the registry's refusal of the entry's index if it refuses the index for its missing
    /// children, before any of them is delivered. The index is put by digest, without a tag. `None`
    /// if the index is accepted, or if the missing children are not proven to be the cause.
    pub(super) async fn sparse_index_refusal(
        &self,
        entry: &LockEntry,
        repository: &str,
    ) -> Option<TransferError> {
        let top = top_part(entry);
        let error = self.put_child(top, repository).await.err()?;
        let bytes = read_part(&*self.source, top).await.ok()?;
        let present = BTreeSet::new();
        self.is_refused_as_sparse(top, &bytes, &present, repository, &error)
            .await
            .then_some(error)
    }
}

fn top_part(entry: &LockEntry) -> &EntryPart {
    // the parts of an entry are in the order of a push, so the top manifest is the last
    &entry.parts[entry.parts.len() - 1]
}

/// The trimmed index of an entry, and the children that it keeps.
fn trimmed_part(entry: &LockEntry) -> Option<(&EntryPart, &BTreeSet<Digest>)> {
    let part = entry.trimmed()?;
    match &part.origin {
        PartOrigin::Trimmed { keep, .. } => Some((part, keep)),
        _ => None,
    }
}

/// The children of an index that are not in `present`.
fn children_except(present: &BTreeSet<Digest>, index: &[u8]) -> Vec<Digest> {
    let Ok((Manifest::Index(children), _)) = Manifest::parse(index, None) else {
        return Vec::new();
    };
    let digests = children.into_iter().map(|child| child.descriptor.digest);
    digests.filter(|digest| !present.contains(digest)).collect()
}

// Delivers the blobs of an entry. Each is uploaded to a repository once per run.

impl Uploader {
    /// Delivers the blobs of an entry to `repository`, except those that only its referrers need.
    /// Returns those that could not be read and that only attestations in its index need, and
    /// whether any blob was sent in this run or is a part of an item whose tag is right.
    pub(super) async fn deliver_blobs(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<(BTreeMap<Digest, TransferError>, bool), TransferError> {
        let own = |digest: &Digest| !entry.referrer_blobs.contains(digest);
        let mut tasks = self.start_blobs(entry, repository, own);
        let mut failed = BTreeMap::new();
        let mut is_any_sent = false;
        let attestations = OnceCell::new();
        while let Some(done) = tasks.join_next().await {
            let (digest, delivered) = done.map_err(|error| lost_task(&error))?;
            let error = match delivered {
                Ok(is_sent) => {
                    is_any_sent |= is_sent;
                    continue;
                }
                Err(error) => error,
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
        Ok((failed, is_any_sent))
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
    ) -> JoinSet<(Digest, Result<bool, TransferError>)> {
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
    /// one delivery at a time uploads the blob, but several may mount it at once. Returns `false`
    /// if only the registry says that it has the blob.
    async fn deliver_blob(
        &self,
        item: &str,
        part: &EntryPart,
        repository: &Arc<str>,
    ) -> Result<bool, TransferError> {
        let known = self.blob_locations(&part.descriptor.digest);
        // Locked before the slot is acquired: a delivery that waits for another delivery's upload
        // must not hold a slot meanwhile.
        let mut turn = known.lock().await;
        let delivered = |locations: &[BlobLocation]| {
            let here = locations.iter().find(|one| one.repository == *repository);
            here.map(|one| !one.is_reported)
        };
        if let Some(is_sent) = delivered(&turn) {
            return Ok(is_sent);
        }
        let mut from = mount_source(&turn, repository);
        let is_copy = from.is_some();
        let is_useful = |from: &Arc<str>| !self.refuses_mount(from, repository);
        while let Some(other) = from.clone().filter(is_useful) {
            // a mount is one short request, so other deliveries need not wait for it
            drop(turn);
            if self.mounted(item, part, repository, &other).await? {
                let mut locations = known.lock().await;
                let mut reported = locations.iter().filter(|one| one.is_reported);
                let is_reported = reported.any(|one| one.repository == other);
                locations.push(BlobLocation::sure(repository, is_reported));
                return Ok(!is_reported);
            }
            turn = known.lock().await;
            // meanwhile, a delivery of another tag may have uploaded it, or a delivery to another
            // repository of the project
            if let Some(is_sent) = delivered(&turn) {
                return Ok(is_sent);
            }
            from = mount_source(&turn, repository).filter(is_useful);
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
        let outcome = transfer
            .run(part, slot.clone())
            .await
            .inspect_err(|error| self.note_quota_error(error, repository, item))?;
        drop(slot);
        let is_reported = outcome == TransferOutcome::AlreadyPresent;
        turn.push(BlobLocation::sure(repository, is_reported));
        Ok(!is_reported)
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

/// The repository to mount a blob from: one of the project of `repository` if there is one, because
/// an account that is limited to a project cannot mount from others.
fn mount_source(locations: &[BlobLocation], repository: &str) -> Option<Arc<str>> {
    let is_near = |location: &&BlobLocation| project(&location.repository) == project(repository);
    let source = locations.iter().find(is_near).or(locations.first());
    source.map(|location| location.repository.clone())
}

fn lost_task(error: &JoinError) -> TransferError {
    let message = format!("a transfer ended without a result: {error}");
    TransferError::new(TransferSide::Destination, ErrorKind::Local, message)
}
