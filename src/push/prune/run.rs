//! Prunes repositories: surveys each, and deletes the manifests that nothing needs.

use super::needed::Needed;
use super::survey::survey;
use crate::push::receipt::PrunedManifest;
use landfall_content::registry::{RegistrySessions, is_deletion_disabled};
use landfall_content::run_concurrently;
use landfall_http::HttpError;
use landfall_model::sum_sizes;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The result of pruning one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SurveyedRepository {
    /// The name of the repository.
    pub(crate) repository: String,
    /// The number of tags that are kept.
    pub(crate) kept: usize,
    /// The reason why nothing, or not everything, could be pruned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// The outcome of pruning: the manifests that were deleted, or would be.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    pub(crate) repositories: Vec<SurveyedRepository>,
    /// The manifests that were deleted, or would be.
    pub(crate) gone: Vec<PrunedManifest>,
    /// The total size of the blobs of `gone` that neither a lock nor a kept image in these
    /// repositories needs. `None` if a repository could not be surveyed: that repository may need
    /// any of the blobs.
    pub(crate) bytes: Option<u64>,
}

/// The errors of pruning. If one occurs, nothing was deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PruneError {
    /// The registry cannot be reached.
    #[error("{0}")]
    Unreachable(HttpError),
    /// The registry deletes no manifests at all.
    #[error(
        "{host} deletes nothing: {error}. Deletion is a setting of the registry: docker-registry \
         has it under storage.delete.enabled (REGISTRY_STORAGE_DELETE_ENABLED=true)"
    )]
    DeletesNothing { host: String, error: HttpError },
}

/// The options of [`prune`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneScope {
    /// The number of newest tags of each shape, such as `v#.#.#`, that are kept in each repository.
    pub(crate) keep_last: usize,
    /// Whether to delete; otherwise the result lists the manifests that would be deleted.
    pub(crate) delete: bool,
}

/// Finds the manifests of `repositories` that are not `needed`, and deletes them if `scope` says
/// so. A repository is left unchanged if its tags cannot be listed or a manifest cannot be read.
pub(crate) async fn prune(
    registry: &str,
    repositories: &[String],
    needed: &Needed,
    scope: PruneScope,
    sessions: &RegistrySessions,
) -> Result<Pruned, PruneError> {
    let session = sessions
        .destination(registry)
        .await
        .map_err(PruneError::Unreachable)?;
    let limits = sessions.transport().limits();
    // each survey already looks up several tags at once
    let surveys = run_concurrently(repositories.len(), 2, |at| {
        survey(&session, &repositories[at], needed, scope.keep_last, limits)
    });
    let surveys = surveys.await;
    let mut pruned = Pruned::default();
    let mut blobs = BTreeMap::new();
    let mut kept_blobs = BTreeSet::new();
    let are_all_surveyed = surveys.iter().all(Result::is_ok);
    for (repository, found) in repositories.iter().zip(surveys) {
        let mut surveyed = SurveyedRepository {
            repository: repository.clone(),
            kept: 0,
            why: None,
        };
        match found {
            Err(error) => surveyed.why = Some(error.to_string()),
            Ok(mut found) => {
                surveyed.kept = found.kept;
                kept_blobs.extend(found.kept_blobs);
                // the children of indexes that could not be deleted
                let mut held = BTreeSet::new();
                for gone in found.gone {
                    let mut is_gone = !held.contains(&gone.digest);
                    if is_gone
                        && scope.delete
                        && let Err(error) = session.delete_manifest(repository, &gone.digest).await
                    {
                        // if deletion is disabled, the registry would refuse all further deletions
                        if pruned.gone.is_empty() && is_deletion_disabled(&error) {
                            return Err(PruneError::DeletesNothing {
                                host: registry.to_owned(),
                                error,
                            });
                        }
                        surveyed.why = Some(error.to_string());
                        is_gone = false;
                    }
                    let own_blobs = found.blobs.remove(&gone.digest).into_iter().flatten();
                    if is_gone {
                        blobs.extend(own_blobs);
                        pruned.gone.push(gone);
                    } else {
                        // the manifest still exists, so everything that it names must be kept
                        kept_blobs.extend(own_blobs.map(|blob| blob.0));
                        let children = found.children.remove(&gone.digest);
                        held.extend(children.into_iter().flatten());
                    }
                }
            }
        }
        pruned.repositories.push(surveyed);
    }
    // repositories share blobs, so a blob is freed only if no kept image of any of them has it
    let freed = blobs
        .iter()
        .filter(|(digest, _)| !kept_blobs.contains(*digest) && !needed.locked.contains(*digest));
    pruned.bytes = are_all_surveyed.then(|| sum_sizes(freed.map(|(_, size)| *size)));
    Ok(pruned)
}
