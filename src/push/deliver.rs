//! Makes one delivery: blobs, child manifests, index, referrers, and the tag last.

use super::refusal::{check_blobs, is_damage, may_be_push_race};
use super::uploader::Uploader;
use futures_util::StreamExt;
use landfall_content::registry::is_quota_error;
use landfall_content::{
    EntryPart, ListedAttestations, LockEntry, PartOrigin, TransferError, read_part,
};
use landfall_http::RetryPolicy;
use landfall_model::report::ItemStatus;
use landfall_model::{Descriptor, Digest, media_type};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

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
            None => self
                .deliver_parts(entry, repository, tag)
                .await
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

    async fn deliver_parts(
        self: &Arc<Self>,
        entry: &LockEntry,
        repository: &str,
        tag: &str,
    ) -> Result<Digest, TransferError> {
        self.check_content_sound()?;
        self.check_quota(repository)?;
        let failed_blobs = self.deliver_blobs(entry, repository).await?;
        let delivered = self
            .put_manifests(entry, repository, tag, &failed_blobs, false)
            .await;
        if !delivered.as_ref().is_err_and(may_be_push_race) {
            return delivered;
        }
        // Another client may be delivering to this repository at the same time: the registry may
        // have reported a blob that was not stored yet, or read a manifest while it was written.
        tokio::time::sleep(RetryPolicy::new(&self.limits).pause(1)).await;
        self.session.distrust_self_mounts();
        self.redeliver_blobs(entry, repository).await?;
        self.put_manifests(entry, repository, tag, &failed_blobs, true)
            .await
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
        let mut requests = futures_util::stream::iter(requests).buffer_unordered(MANIFESTS_AT_ONCE);
        let attestations = OnceCell::new();
        let mut lost = None;
        while let Some((child, result)) = requests.next().await {
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
