//! What of an entry stands in a repository: every manifest and blob is asked for, each once.

use landfall_content::registry::RegistrySession;
use landfall_content::{EntryPart, LockEntry};
use landfall_http::{HttpError, OnceMap};
use landfall_model::Digest;

/// Asks a registry what stands there.
pub(super) struct Presence<'a> {
    session: &'a RegistrySession,
    /// Whether blobs are asked for too. Registries take no manifest without them, but may lose them
    /// later.
    blobs: bool,
    /// Whether something is there, by repository and digest.
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

    /// The parts of `entry` that are not in `repository`. The trimmed index stands in for the whole
    /// one.
    ///
    /// # Errors
    /// When the registry cannot say.
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
            let stands_in = match trimmed.filter(|_| *digest == entry.top.digest) {
                Some(trimmed) => self.has(repository, trimmed).await?,
                None => false,
            };
            if !stands_in {
                missing.push(digest);
            }
        }
        Ok(missing)
    }

    async fn has(&self, repository: &str, part: &EntryPart) -> Result<bool, HttpError> {
        let key = (repository.to_owned(), part.descriptor.digest.clone());
        let asking = async || match part.is_manifest() {
            true => {
                let digest = part.descriptor.digest.to_string();
                Ok(self
                    .session
                    .head_manifest(repository, &digest, false)
                    .await?
                    .is_some())
            }
            false => self.session.holds_blob(repository, &part.descriptor).await,
        };
        self.answers.get_or_try_init(key, asking).await
    }
}
