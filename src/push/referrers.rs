//! Delivers referrers: manifests at cosign's tags, and manifests with a subject. If the registry
//! has no referrers API, manifests with a subject are added to the list that clients keep under a
//! tag (distribution-spec, "Referrers Tag Schema").

use super::deliver::MANIFESTS_AT_ONCE;
use super::uploader::{Uploader, check_blobs, is_damage, not_delivered};
use futures_util::StreamExt;
use landfall_content::registry::{RegistrySession, referrers_in};
use landfall_content::{AttachedReferrer, LockEntry, TransferError, read_part};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{
    Descriptor, Digest, bare_referrers, media_type, merge_referrers, read_referrer, referrers_tag,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A referrer that the registry does not list by itself, so it must be added to the list of its
/// subject.
struct UnlistedReferrer {
    subject: Digest,
    entry: Value,
}

impl Uploader {
    /// Puts the referrers of an entry. `repository` must have the entry's manifests and blobs.
    /// `failed_blobs` are blobs of referrers that could not be delivered. Returns the referrers
    /// that were not delivered.
    ///
    /// Fails if the content of a referrer is damaged and damage stops the push.
    pub(super) async fn put_referrers<'e>(
        &self,
        entry: &'e LockEntry,
        repository: &str,
        failed_blobs: &BTreeMap<Digest, TransferError>,
    ) -> Result<Vec<(&'e Descriptor, TransferError)>, TransferError> {
        let (indexes, leaves): (Vec<&AttachedReferrer>, Vec<&AttachedReferrer>) = entry
            .referrers
            .iter()
            .partition(|one| !media_type::is_image_manifest(&one.descriptor.media_type));
        let requests: Vec<_> = leaves
            .into_iter()
            .map(|referrer| self.try_referrer(entry, referrer, repository, failed_blobs))
            .collect();
        let requests = futures_util::stream::iter(requests).buffer_unordered(MANIFESTS_AT_ONCE);
        let mut results: Vec<_> = requests.collect().await;
        // indexes last: their children must be present
        for referrer in indexes {
            results.push(
                self.try_referrer(entry, referrer, repository, failed_blobs)
                    .await,
            );
        }
        let mut refused = Vec::new();
        // all referrers of a subject are added to its list at once, because each update writes the
        // whole list
        let mut lists: BTreeMap<Digest, Vec<(&Descriptor, Value)>> = BTreeMap::new();
        for (referrer, result) in results {
            match result {
                Ok(Some(UnlistedReferrer { subject, entry })) => {
                    lists.entry(subject).or_default().push((referrer, entry));
                }
                Ok(None) => {}
                // the content of a bundle was verified before, so damage is not only of a referrer
                Err(error) if self.stops_at_damage && is_damage(&error) => {
                    return Err(error);
                }
                Err(error) => refused.push((referrer, error)),
            }
        }
        for (subject, mut listed) in lists {
            // the requests above finish in any order
            listed.sort_by_key(|(referrer, _)| referrer.digest.clone());
            let entries: Vec<Value> = listed.iter().map(|(_, entry)| entry.clone()).collect();
            if let Err(error) = self.update_list(repository, &subject, &entries).await {
                refused.extend(
                    listed
                        .into_iter()
                        .map(|(referrer, _)| (referrer, error.clone())),
                );
            }
        }
        Ok(refused)
    }

    /// Like [`put_referrer`](Self::put_referrer), with the referrer.
    async fn try_referrer<'e>(
        &self,
        entry: &LockEntry,
        referrer: &'e AttachedReferrer,
        repository: &str,
        failed_blobs: &BTreeMap<Digest, TransferError>,
    ) -> (
        &'e Descriptor,
        Result<Option<UnlistedReferrer>, TransferError>,
    ) {
        let put = self
            .put_referrer(entry, referrer, repository, failed_blobs)
            .await;
        (&referrer.descriptor, put)
    }

    /// Puts one referrer of an entry, and returns it if the registry does not list it.
    async fn put_referrer(
        &self,
        entry: &LockEntry,
        referrer: &AttachedReferrer,
        repository: &str,
        failed_blobs: &BTreeMap<Digest, TransferError>,
    ) -> Result<Option<UnlistedReferrer>, TransferError> {
        let digest = &referrer.descriptor.digest;
        let part = entry
            .parts
            .iter()
            .find(|part| part.is_manifest() && part.descriptor.digest == *digest)
            .ok_or_else(|| {
                let message = format!("the lock lists the referrer {digest} without its manifest");
                TransferError::new(TransferSide::Source, ErrorKind::Invalid, message)
            })?;
        let bytes = read_part(&*self.source, part)
            .await
            .map_err(TransferError::source)?;
        check_blobs(&bytes, failed_blobs)?;
        if let Some(tag) = &referrer.tag {
            self.check_tag(repository, tag, digest).await?;
        }
        let reference = referrer.tag.clone().unwrap_or_else(|| digest.to_string());
        let media_type = &referrer.descriptor.media_type;
        let is_listed = self
            .put(repository, &reference, media_type, bytes.clone())
            .await?;
        let unlisted = read_referrer(&bytes, &referrer.descriptor).filter(|_| !is_listed);
        Ok(unlisted.map(|referrer| UnlistedReferrer {
            subject: referrer.subject,
            entry: referrer.entry,
        }))
    }

    /// Fails if the tag of a referrer points to another digest and may not be moved: the other
    /// manifest may be the site's own signature.
    async fn check_tag(
        &self,
        repository: &str,
        tag: &str,
        digest: &Digest,
    ) -> Result<(), TransferError> {
        if self.move_tags {
            return Ok(());
        }
        let found = self.session.head_manifest(repository, tag, true).await;
        match found.map_err(TransferError::destination)? {
            Some(other) if other != *digest => {
                let host = self.session.host();
                let message = format!(
                    "{host}/{repository}:{tag} already points to {other}, not to {digest}; \
                     --move-tags replaces it"
                );
                Err(not_delivered(message))
            }
            _ => Ok(()),
        }
    }

    /// Whether the account may read `repository`, which has the manifest `present`. Otherwise a
    /// list that it may not read would be replaced.
    async fn can_read(&self, repository: &str, present: &Digest) -> bool {
        let found = self
            .session
            .head_manifest(repository, &present.to_string(), false)
            .await;
        matches!(found, Ok(Some(_)))
    }

    /// Adds `entries` to the list of referrers of `subject`, and keeps its other entries. The list
    /// is read and written as a whole, so only one delivery at a time may update it.
    async fn update_list(
        &self,
        repository: &str,
        subject: &Digest,
        entries: &[Value],
    ) -> Result<(), TransferError> {
        let tag = referrers_tag(subject);
        let turn = self.manifest_turn(repository, &tag);
        let _turn = turn.lock().await;
        let old = match self.session.referrers_list(repository, subject).await {
            Ok(list) => list.map(|raw| raw.bytes),
            // some registries answer 403 for a missing tag
            Err(error) if error.status == Some(403) && self.can_read(repository, subject).await => {
                None
            }
            Err(error) => return Err(TransferError::destination(error)),
        };
        let merged = merge_referrers(old.as_deref(), entries)
            .map_err(|error| not_delivered(error.to_string()))?;
        match merged {
            // the list has all entries
            None => Ok(()),
            Some(bytes) => {
                let put = self.session.put_manifest(
                    repository,
                    &tag,
                    media_type::OCI_INDEX,
                    bytes.into(),
                );
                put.await.map(drop).map_err(TransferError::destination)
            }
        }
    }
}

/// Whether `repository` has all referrers of the entry: one HEAD for each of cosign's tags, and one
/// list for each subject. With `writes`, the account writes to the repository later in the run, so
/// a tag of cosign for which the registry answers 403 counts as absent.
pub(super) async fn has_all_referrers(
    session: &RegistrySession,
    entry: &LockEntry,
    repository: &str,
    writes: bool,
) -> Result<bool, HttpError> {
    let mut subjects: BTreeMap<&Digest, BTreeSet<&Digest>> = BTreeMap::new();
    for AttachedReferrer {
        descriptor,
        tag,
        subject,
        ..
    } in &entry.referrers
    {
        if let Some(tag) = tag
            && session.head_manifest(repository, tag, writes).await?
                != Some(descriptor.digest.clone())
        {
            return Ok(false);
        }
        if let Some(subject) = subject {
            subjects
                .entry(subject)
                .or_default()
                .insert(&descriptor.digest);
        }
    }
    for (subject, wanted) in subjects {
        // `None` means that the registry returned no list, usually because it has no referrers API
        let listed = match session.referrers(repository, subject, writes).await? {
            Some(listed) => listed,
            None => match session.referrers_list(repository, subject).await {
                Err(error) if !writes || error.kind != ErrorKind::Denied => return Err(error),
                Ok(Some(list)) => {
                    let entries = referrers_in(&list.bytes);
                    let entries = entries
                        .map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))?;
                    // a push completes entries that clients cannot find by their type
                    let bare = if writes {
                        bare_referrers(&list.bytes)
                    } else {
                        BTreeSet::new()
                    };
                    let listed = entries.into_iter().map(|child| child.descriptor);
                    listed
                        .filter(|one| {
                            !bare.contains(&one.digest) || media_type::is_index(&one.media_type)
                        })
                        .collect()
                }
                Ok(None) | Err(_) => Vec::new(),
            },
        };
        let listed: BTreeSet<&Digest> =
            listed.iter().map(|descriptor| &descriptor.digest).collect();
        if !wanted.is_subset(&listed) {
            return Ok(false);
        }
    }
    Ok(true)
}
