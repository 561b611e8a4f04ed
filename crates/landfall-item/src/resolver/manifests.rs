//! Reads manifests and tags of images: from local archives, the store, or the registry.

use super::resolve_error::ResolveError;
use super::state::Resolver;
use crate::repositories::RepositoryTags;
use landfall_content::BlobRead;
use landfall_content::registry::FetchedManifest;
use landfall_model::{Descriptor, Digest, ImageRef};

impl Resolver {
    /// A manifest by tag or digest. If `known` is its descriptor, or an archive has the manifest,
    /// it is read from the store if possible. With `known`, it is fetched only once if several
    /// items need it at the same time.
    ///
    /// # Errors
    /// If the registry does not have the manifest, or cannot be reached.
    pub async fn manifest(
        &self,
        name: &ImageRef,
        reference: &str,
        known: Option<&Descriptor>,
    ) -> Result<FetchedManifest, ResolveError> {
        let archived = match &self.archived_image {
            Some(image) => Some(&image.top)
                .filter(|top| top.digest.to_string() == reference)
                .cloned(),
            None => self.archives.find(name, reference),
        };
        if let Some(raw) = known
            .or(archived.as_ref())
            .and_then(|descriptor| self.stored_manifest(descriptor))
        {
            return Ok(raw);
        }
        let Some(descriptor) = known else {
            return self.fetch_manifest(name, reference, None).await;
        };
        // The map remembers only that the manifest was fetched. Other items read it from the store,
        // so memory does not grow with the number of manifests.
        let fetching = async || {
            Ok::<_, ResolveError>(((), self.fetch_manifest(name, reference, known).await?))
        };
        let key = (name.registry.clone(), descriptor.digest.clone());
        let ((), own) = self.fetched.get_or_init_with(key, fetching).await?;
        match own.or_else(|| self.stored_manifest(descriptor)) {
            Some(raw) => Ok(raw),
            // another item fetched it, but the store could not keep it
            None => self.fetch_manifest(name, reference, known).await,
        }
    }

    /// The digest that the registry of `name` has for `reference`, a tag or a digest. Docker Hub
    /// does not count this request against its limit of pulls.
    pub(crate) async fn head_manifest(
        &self,
        name: &ImageRef,
        reference: &str,
    ) -> Result<Digest, ResolveError> {
        let session = self.sessions.upstream(&name.registry).await?;
        let found = session.head_manifest(&name.repository, reference, false);
        found.await?.ok_or_else(ResolveError::gone)
    }

    fn stored_manifest(&self, descriptor: &Descriptor) -> Option<FetchedManifest> {
        if !self.is_stored(descriptor) {
            return None;
        }
        let bytes = self.disk.read(descriptor).ok()?;
        let content_type = Some(descriptor.media_type.to_string()).filter(|kind| !kind.is_empty());
        Some(FetchedManifest {
            bytes: bytes.into(),
            content_type,
            digest: descriptor.digest.clone(),
        })
    }

    /// Whether the store has this blob, after copying it from an archive if necessary. Returns
    /// false if the store fails, so that the blob is fetched from upstream.
    pub(super) fn is_stored(&self, descriptor: &Descriptor) -> bool {
        if self.has_blob(descriptor) {
            return true;
        }
        if let Some(image) = &self.archived_image {
            let progress = &*self.progress;
            let blob = std::slice::from_ref(descriptor);
            let import = || image.import(blob, &self.disk, progress);
            return tokio::task::block_in_place(import).is_ok() && self.has_blob(descriptor);
        }
        let Some(bytes) = self.archives.document(&descriptor.digest) else {
            return false;
        };
        if let Err(error) = self.disk.put(descriptor, &bytes) {
            self.note_not_stored(&error);
        }
        self.has_blob(descriptor)
    }

    fn has_blob(&self, descriptor: &Descriptor) -> bool {
        self.disk
            .has(&descriptor.digest, descriptor.size)
            .unwrap_or(false)
    }

    async fn fetch_manifest(
        &self,
        name: &ImageRef,
        reference: &str,
        known: Option<&Descriptor>,
    ) -> Result<FetchedManifest, ResolveError> {
        self.refuse_network(known, reference)?;
        let session = self.sessions.upstream(&name.registry).await?;
        let raw = match known {
            Some(descriptor) => session.manifest_of(&name.repository, descriptor).await?,
            None => session.manifest(&name.repository, reference).await?,
        };
        let descriptor = Descriptor::new(
            raw.digest.clone(),
            raw.bytes.len() as u64,
            raw.content_type.clone().unwrap_or_default(),
        );
        self.keep(descriptor, raw.bytes.clone()).await;
        Ok(raw)
    }

    /// Fails if an archive should have the manifest or blob `known`.
    pub(super) fn refuse_network(
        &self,
        known: Option<&Descriptor>,
        reference: &str,
    ) -> Result<(), ResolveError> {
        let Some(image) = &self.archived_image else {
            return Ok(());
        };
        let import = |blob| {
            let blob = std::slice::from_ref(blob);
            image.import(blob, &self.disk, &*self.progress)
        };
        let cause = known.and_then(|blob| tokio::task::block_in_place(|| import(blob)).err());
        let cause = cause.unwrap_or_else(|| format!("it lacks {reference}"));
        Err(ResolveError {
            // an attestation that the archive lacks is a loss; the image can do without it
            is_gone: true,
            ..format!("its archive is not complete: {cause}").into()
        })
    }

    /// All tags of an image's repository, if its registry lists them in at most `pages` answers.
    ///
    /// # Errors
    /// If the registry cannot be reached.
    pub async fn tags(
        &self,
        name: &ImageRef,
        pages: usize,
    ) -> Result<RepositoryTags, ResolveError> {
        let session = self.sessions.upstream(&name.registry).await?;
        Ok(self.repositories.tags(&session, name, pages).await?)
    }

    /// All tags of an image's repository, if its registry lists them within the limit of pages. An
    /// earlier call of [`Resolver::tags`] with fewer pages does not matter.
    ///
    /// # Errors
    /// If the registry cannot be reached.
    pub async fn all_tags(&self, name: &ImageRef) -> Result<RepositoryTags, ResolveError> {
        let session = self.sessions.upstream(&name.registry).await?;
        let pages = self.limits().pages;
        Ok(self.repositories.all_tags(&session, name, pages).await?)
    }

    /// The tags of an image's repository, if this run has listed them.
    pub fn listed_tags(&self, name: &ImageRef) -> RepositoryTags {
        self.repositories.listed_tags(name)
    }
}
