//! Looks up the manifests and blobs of entries at a registry, each once.

use landfall_content::registry::RegistrySession;
use landfall_content::{EntryPart, LockEntry};
use landfall_http::{ErrorKind, HttpError, OnceMap};
use landfall_model::Digest;

/// Looks up manifests and blobs at a registry.
pub(super) struct Presence<'a> {
    session: &'a RegistrySession,
    /// Whether blobs are looked up too. Registries accept a manifest only with its blobs, but may
    /// lose the blobs later.
    blobs: bool,
    /// Whether a repository has a digest. Parts that several images share are looked up once.
    answers: OnceMap<(String, Digest), bool>,
}

impl<'a> Presence<'a> {
    pub(super) fn new(session: &'a RegistrySession, blobs: bool) -> Presence<'a> {
        Presence {
            session,
            blobs,
            answers: OnceMap::default(),
        }
    }

    /// The parts of `entry` that `repository` lacks. If `repository` has the trimmed index, the
    /// full index does not count as missing.
    pub(super) async fn missing<'e>(
        &self,
        entry: &'e LockEntry,
        repository: &str,
    ) -> Result<Vec<&'e Digest>, HttpError> {
        let trimmed = entry.trimmed();
        let is_trimmed = |part: &&EntryPart| trimmed.is_some_and(|trimmed| trimmed == *part);
        let mut missing = Vec::new();
        for part in entry
            .parts
            .iter()
            .filter(|part| !is_trimmed(part) && (self.blobs || part.is_manifest()))
        {
            let digest = &part.descriptor.digest;
            if self.has(repository, part).await? {
                continue;
            }
            let is_replaced = match trimmed {
                Some(trimmed) if *digest == entry.top.digest => {
                    self.has(repository, trimmed).await?
                }
                _ => false,
            };
            if !is_replaced {
                missing.push(digest);
            }
        }
        Ok(missing)
    }

    /// Whether `repository` lacks one of the manifests in `digests`, which are parts of `entry`. A
    /// look-up that the registry refuses counts as no.
    pub(super) async fn lacks_any(
        &self,
        entry: &LockEntry,
        repository: &str,
        digests: &[&Digest],
    ) -> Result<bool, HttpError> {
        let is_looked_up = |part: &&EntryPart| digests.contains(&&part.descriptor.digest);
        for part in entry.parts.iter().filter(is_looked_up) {
            match self.has(repository, part).await {
                Ok(true)
                | Err(HttpError {
                    kind: ErrorKind::Status(400..500),
                    ..
                }) => {}
                Ok(false) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    async fn has(&self, repository: &str, part: &EntryPart) -> Result<bool, HttpError> {
        let key = (repository.to_owned(), part.descriptor.digest.clone());
        self.answers
            .get_or_try_init(key, async || {
                if !part.is_manifest() {
                    return self
                        .session
                        .has_blob_of_size(repository, &part.descriptor)
                        .await;
                }
                let digest = part.descriptor.digest.to_string();
                let found = self
                    .session
                    .head_manifest(repository, &digest, false)
                    .await?;
                Ok(found.is_some())
            })
            .await
    }
}
