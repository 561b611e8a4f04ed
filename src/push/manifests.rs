//! Pushes the manifests of a delivery. Each is written once, and an index is replaced by its
//! trimmed form if the registry refuses this index for its missing children.

use super::refusal::{has_foreign_urls, refused_type, sparse_refusal};
use super::uploader::Uploader;
use bytes::Bytes;
use landfall_content::registry::{SparseRefusal, is_immutable_tag_error};
use landfall_content::{EntryPart, LockEntry, PartOrigin, TransferError, read_part};
use landfall_http::ErrorKind;
use landfall_model::config::IndexPolicy;
use landfall_model::report::TransferSide;
use landfall_model::{Digest, Manifest, locked, trim_index};
use std::collections::BTreeSet;

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
