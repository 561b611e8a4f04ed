//! Referrers at the destination: cosign's tags, manifests with a subject by the registry's
//! referrers API, or else in the list that clients keep under a tag.

use super::uploader::Uploader;
use futures_util::StreamExt;
use landfall_content::registry::{RegistrySession, referrers_in};
use landfall_content::{AttachedReferrer, EntryPart, LockEntry, TransferError, read_part};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::TransferSide;
use landfall_model::{Digest, media_type, merge_referrers, read_referrer, referrers_tag};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a registry does not list, and so must be put into the list of its subject.
struct Unlisted {
    subject: Digest,
    entry: Value,
}

impl Uploader {
    /// Puts what refers to the entry, whose manifests and blobs stand in `repository` already.
    pub(super) async fn attach(
        &self,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<(), TransferError> {
        let (indexes, leaves): (Vec<&AttachedReferrer>, Vec<&AttachedReferrer>) = entry
            .referrers
            .iter()
            .partition(|one| media_type::is_index(&one.descriptor.media_type));
        let putting: Vec<_> = leaves
            .into_iter()
            .map(|one| self.put_referrer(entry, one, repository))
            .collect();
        let mut putting = futures_util::stream::iter(putting).buffer_unordered(4);
        let mut unlisted = Vec::new();
        while let Some(result) = putting.next().await {
            unlisted.extend(result?);
        }
        for one in indexes {
            unlisted.extend(self.put_referrer(entry, one, repository).await?);
        }
        let mut lists: BTreeMap<Digest, Vec<Value>> = BTreeMap::new();
        for Unlisted { subject, entry } in unlisted {
            lists.entry(subject).or_default().push(entry);
        }
        for (subject, mut entries) in lists {
            entries.sort_by_key(|entry| entry["digest"].as_str().map(str::to_owned));
            self.list(repository, &subject, &entries).await?;
        }
        Ok(())
    }

    async fn put_referrer(
        &self,
        entry: &LockEntry,
        one: &AttachedReferrer,
        repository: &str,
    ) -> Result<Option<Unlisted>, TransferError> {
        let digest = &one.descriptor.digest;
        let missing = || {
            let message =
                format!("the lock names {digest} as a referrer and has no manifest of it");
            TransferError::new(TransferSide::Source, ErrorKind::Invalid, message)
        };
        let is_it = |part: &&EntryPart| part.is_manifest() && part.descriptor.digest == *digest;
        let part = entry.parts.iter().find(is_it).ok_or_else(missing)?;
        let bytes = read_part(&*self.source, part)
            .await
            .map_err(TransferError::source)?;
        if let Some(tag) = &one.tag {
            self.may_tag(repository, tag, digest).await?;
        }
        let reference = one.tag.clone().unwrap_or_else(|| digest.to_string());
        let media_type = &one.descriptor.media_type;
        let listed = self
            .put(repository, &reference, media_type, bytes.clone())
            .await?;
        let said = read_referrer(&bytes, &one.descriptor).filter(|_| !listed);
        Ok(said.map(|said| Unlisted {
            subject: said.subject,
            entry: said.entry,
        }))
    }

    /// Refuses to take a tag away from another digest: it may be the site's own signature.
    async fn may_tag(
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
                    "{host}/{repository}:{tag} stands at {other} already, and not at {digest}; --move-tags \
                     replaces it"
                );
                Err(TransferError::new(
                    TransferSide::Destination,
                    ErrorKind::Invalid,
                    message,
                ))
            }
            _ => Ok(()),
        }
    }

    /// Puts `entries` into the list of what refers to `subject`. What others put there stays. One
    /// at a time: the list is read, and written as a whole.
    async fn list(
        &self,
        repository: &str,
        subject: &Digest,
        entries: &[Value],
    ) -> Result<(), TransferError> {
        let tag = referrers_tag(subject);
        let turn = self.manifest_turn(repository, &tag);
        let _turn = turn.lock().await;
        let old = self.session.referrers_list(repository, subject).await;
        let old = old
            .map_err(TransferError::destination)?
            .map(|raw| raw.bytes);
        let invalid = |error: String| {
            TransferError::new(TransferSide::Destination, ErrorKind::Invalid, error)
        };
        let merged =
            merge_referrers(old.as_deref(), entries).map_err(|error| invalid(error.to_string()))?;
        match merged {
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

/// Whether all that refers to the entry stands in `repository`: one HEAD for each of cosign's tags,
/// one list for each subject. `writes` says that the account writes there later in the run.
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
        let listed = match session.referrers(repository, subject, writes).await? {
            Some(listed) => listed,
            None => match session.referrers_list(repository, subject).await? {
                Some(list) => {
                    let entries = referrers_in(&list.bytes);
                    let entries = entries
                        .map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))?;
                    entries.into_iter().map(|child| child.descriptor).collect()
                }
                None => Vec::new(),
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
