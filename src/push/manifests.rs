//! Pushes the manifests of a delivery. Each is written once, and an index is replaced by its
//! trimmed form if the registry refuses an index with missing children.

use super::refusal::{has_foreign_urls, is_missing_children_refusal};
use super::uploader::Uploader;
use bytes::Bytes;
use landfall_content::registry::is_immutable_tag_error;
use landfall_content::{EntryPart, LockEntry, PartOrigin, TransferError, read_part};
use landfall_http::ErrorKind;
use landfall_model::config::IndexPolicy;
use landfall_model::report::TransferSide;
use landfall_model::{Digest, trim_index};
use std::sync::atomic::Ordering;

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
        Err(TransferError::destination(error))
    }

    /// Puts the top manifest of an entry at `tag`, or by digest if `tag` is `None`. If the registry
    /// refuses an index with missing children, the trimmed index is put instead. Returns the digest
    /// of the manifest that was put.
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
        let Some(part) = entry.trimmed() else {
            self.put(repository, &reference(top), media_type, bytes)
                .await?;
            return Ok(top.descriptor.digest.clone());
        };
        if !self.refuses_sparse.load(Ordering::Relaxed) {
            match self
                .put(repository, &reference(top), media_type, bytes.clone())
                .await
            {
                Ok(_) => return Ok(top.descriptor.digest.clone()),
                Err(error)
                    if is_missing_children_refusal(&error)
                        && self.index == IndexPolicy::Trimmed =>
                {
                    // the registry would refuse all further indexes with missing children
                    self.refuses_sparse.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        let PartOrigin::Trimmed { keep, .. } = &part.origin else {
            return Ok(top.descriptor.digest.clone());
        };
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

    /// Whether the registry accepts the entry's index although children are missing. The index is
    /// put by digest, without a tag.
    pub(super) async fn accepts_sparse_index(
        &self,
        entry: &LockEntry,
        repository: &str,
    ) -> Result<bool, TransferError> {
        let top = top_part(entry);
        match self.put_child(top, repository).await {
            Ok(()) => Ok(true),
            Err(error) if is_missing_children_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn top_part(entry: &LockEntry) -> &EntryPart {
    // the parts of an entry are in the order of a push, so the top manifest is the last
    &entry.parts[entry.parts.len() - 1]
}
