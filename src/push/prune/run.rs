//! All repositories that were named: what nobody needs of them, and its removal.

use super::needed::Needed;
use super::survey::survey;
use crate::push::receipt::PrunedManifest;
use landfall_content::registry::{RegistrySessions, is_deletion_disabled};
use landfall_content::run_concurrently;
use landfall_http::HttpError;
use landfall_model::Digest;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A repository that was looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Looked {
    /// Its name.
    pub(crate) repository: String,
    /// How many of its tags stay.
    pub(crate) kept: usize,
    /// Why nothing of it goes, or not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    /// Each repository.
    pub(crate) repositories: Vec<Looked>,
    /// What was removed, or would be.
    pub(crate) gone: Vec<PrunedManifest>,
    /// The bytes of blobs that nothing needs any more which was looked into or is locked.
    pub(crate) bytes: u64,
}

/// Why nothing was removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PruneError {
    /// The registry cannot be reached.
    #[error("{0}")]
    Unreachable(HttpError),
    /// It removes no manifest at all.
    #[error(
        "{host} removes nothing: {error}. Deletion is a setting of the registry: docker-registry has it under \
         storage.delete.enabled (REGISTRY_STORAGE_DELETE_ENABLED=true)"
    )]
    DeletesNothing {
        /// The registry.
        host: String,
        /// Its answer.
        error: HttpError,
    },
}

/// Finds what of `repositories` is not `needed`, less the `keep_last` newest tags of each; and with
/// `delete` removes it. A repository that does not tell all about itself is left alone.
pub(crate) async fn prune(
    registry: &str,
    repositories: &[String],
    needed: &Needed,
    (keep_last, delete): (usize, bool),
    sessions: &RegistrySessions,
) -> Result<Pruned, PruneError> {
    let session = sessions
        .destination(registry)
        .await
        .map_err(PruneError::Unreachable)?;
    let limits = sessions.transport().limits();
    // each asks for several tags at once
    let looking = run_concurrently(repositories.len(), 2, |at| {
        survey(&session, &repositories[at], needed, keep_last, limits)
    });
    let found = looking.await;
    let mut pruned = Pruned::default();
    let (mut blobs, mut kept_blobs) = (BTreeMap::new(), BTreeSet::new());
    for (repository, found) in repositories.iter().zip(found) {
        let mut looked = Looked {
            repository: repository.clone(),
            kept: 0,
            why: None,
        };
        match found {
            Err(error) => looked.why = Some(error.to_string()),
            Ok(mut found) => {
                looked.kept = found.kept;
                kept_blobs.extend(found.kept_blobs);
                for gone in found.gone {
                    let removed = if delete {
                        session
                            .delete_manifest(repository, &gone.digest)
                            .await
                            .map(drop)
                    } else {
                        Ok(())
                    };
                    match removed {
                        Ok(()) => {
                            blobs.extend(found.blobs.remove(&gone.digest).into_iter().flatten());
                            pruned.gone.push(gone);
                        }
                        Err(error) if pruned.gone.is_empty() && is_deletion_disabled(&error) => {
                            return Err(PruneError::DeletesNothing {
                                host: registry.to_owned(),
                                error,
                            });
                        }
                        Err(error) => {
                            kept_blobs.extend(
                                found
                                    .blobs
                                    .remove(&gone.digest)
                                    .into_iter()
                                    .flatten()
                                    .map(|blob| blob.0),
                            );
                            looked.why = Some(error.to_string());
                        }
                    }
                }
            }
        }
        pruned.repositories.push(looked);
    }
    let is_free = |digest: &Digest| !kept_blobs.contains(digest) && !needed.locked.contains(digest);
    pruned.bytes = blobs
        .iter()
        .filter(|(digest, _)| is_free(digest))
        .map(|(_, size)| size)
        .sum();
    Ok(pruned)
}
