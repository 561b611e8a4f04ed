//! Finds manifests that nothing needs any more in the repositories of a registry, and deletes them
//! if requested.
//!
//! - `needed.rs`: the content to keep, as named by locks, receipts and the images of pods.
//! - `manifest_graph.rs`: the manifests of one repository, and those that must be kept.

mod manifest_graph;
mod needed;

use self::manifest_graph::{ManifestGraph, PruneCandidates};
use crate::push::state::PrunedManifest;
use landfall_content::registry::{RegistrySession, RegistrySessions, is_deletion_disabled};
use landfall_content::run_concurrently;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{
    Descriptor, Digest, Failure, Limits, Manifest, TagVersion, sum_sizes, tagged_subject,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::needed::Needed;

/// The result of pruning one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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

/// Finds the manifests of `repositories` that are not `needed`, and deletes them if `delete` is
/// set; otherwise the result lists those that would be deleted. In each repository, the newest
/// `keep_last` tags of each shape, such as `v#.#.#`, are kept. A repository is left unchanged if
/// its tags cannot be listed or a manifest cannot be read.
pub(crate) async fn prune(
    registry: &str,
    repositories: &[String],
    needed: &Needed,
    keep_last: usize,
    delete: bool,
    sessions: &RegistrySessions,
) -> Result<Pruned, Failure> {
    let session = sessions
        .destination(registry)
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    let limits = sessions.transport().limits();
    // each survey already looks up several tags at once
    let surveys = run_concurrently(repositories.len(), 2, |at| {
        survey(&session, &repositories[at], needed, keep_last, limits)
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
                        && delete
                        && let Err(error) = session.delete_manifest(repository, &gone.digest).await
                    {
                        // if deletion is disabled, the registry would refuse all further deletions
                        if pruned.gone.is_empty() && is_deletion_disabled(&error) {
                            return Err(Failure::failed(format!(
                                "{registry} deletes nothing: {error}. Deletion is a setting of \
                                 the registry: docker-registry has it under \
                                 storage.delete.enabled (REGISTRY_STORAGE_DELETE_ENABLED=true)"
                            )));
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

/// The content of a repository.
#[derive(Debug)]
struct RepositoryContent {
    /// The number of tags that are kept.
    kept: usize,
    /// The manifests that may be deleted, in this order: all indexes that name a manifest come
    /// before it.
    gone: Vec<PrunedManifest>,
    /// For each index that may be deleted, its children.
    children: BTreeMap<Digest, Vec<Digest>>,
    /// For each image that may be deleted, its blobs with their sizes.
    blobs: BTreeMap<Digest, Vec<(Digest, u64)>>,
    /// The blobs of images that are kept and are not in a lock.
    kept_blobs: BTreeSet<Digest>,
}

/// Surveys `repository`. Deletes nothing.
async fn survey(
    session: &RegistrySession,
    repository: &str,
    needed: &Needed,
    keep_last: usize,
    limits: &Limits,
) -> Result<RepositoryContent, HttpError> {
    let Some(tags) = session.tags(repository, limits.pages).await? else {
        let below = format!("/{repository}");
        let mut kept = needed.tags.iter().map(|(name, _)| name);
        let meant = kept.find(|name| name.ends_with(&below));
        let meant = meant.map(|name| format!("; did you mean {name}?"));
        let message = format!(
            "{} does not list its tags: it does not exist, or this account may not read it{}",
            session.host(),
            meant.unwrap_or_default()
        );
        return Err(HttpError::new(ErrorKind::Invalid, message));
    };
    let names: Vec<&String> = tags.iter().collect();
    let lookups = run_concurrently(names.len(), limits.jobs, |at| {
        session.head_manifest(repository, names[at], false)
    });
    let digests = lookups.await;
    let mut digest_by_tag = BTreeMap::new();
    for (tag, digest) in tags.iter().zip(digests) {
        // a tag that was deleted since it was listed has no digest
        digest_by_tag.extend(digest?.map(|digest| (tag.as_str(), digest)));
    }
    let mut graph = ManifestGraph::new(session, repository, needed, &digest_by_tag);
    let last = newest(digest_by_tag.keys().copied(), keep_last);
    let is_needed = |tag: &str, digest: &Digest| {
        needed.digests.contains(digest)
            || needed
                .tags
                .contains(&(repository.to_owned(), tag.to_owned()))
            || last.contains(tag)
    };
    for (tag, digest) in &digest_by_tag {
        if is_needed(tag, digest) {
            graph.keep(digest).await?;
        }
    }
    // kept manifests may have referrers and subjects, which are kept too
    let candidates = loop {
        graph.keep_referring_tags().await?;
        let candidates = graph.candidates().await?;
        if candidates.digests.is_empty()
            || !graph.keep_needed(&candidates).await? && !graph.keep_untagged(limits.jobs).await?
        {
            break candidates;
        }
    };
    content(graph, candidates).await
}

/// Returns the content of a repository in which only `candidates` may be deleted.
async fn content(
    mut graph: ManifestGraph<'_>,
    candidates: PruneCandidates,
) -> Result<RepositoryContent, HttpError> {
    let digest_by_tag = graph.digest_by_tag;
    let mut gone: Vec<PrunedManifest> = Vec::new();
    let mut blobs = BTreeMap::new();
    let mut children_by_index = BTreeMap::new();
    for digest in candidates.digests {
        match graph.read(&digest).await?.map(|node| &node.manifest) {
            Some(Manifest::Index(children)) => {
                let children = children.iter().map(|child| child.descriptor.digest.clone());
                children_by_index.insert(digest.clone(), children.collect());
            }
            Some(image) => {
                let image_blobs = blobs_of(image).map(|blob| (blob.digest.clone(), blob.size));
                blobs.insert(digest.clone(), image_blobs.collect());
            }
            None => continue,
        }
        let tags = digest_by_tag.iter().filter(|(_, at)| **at == digest);
        let tags = tags.map(|(tag, _)| (*tag).to_owned()).collect();
        gone.push(PrunedManifest {
            repository: graph.repository.to_owned(),
            digest,
            tags,
        });
    }
    let mut kept_blobs = BTreeSet::new();
    for digest in graph.kept.clone().difference(&graph.needed.locked) {
        if let Some(node) = graph.read(digest).await? {
            kept_blobs.extend(blobs_of(&node.manifest).map(|blob| blob.digest.clone()));
        }
    }
    let kept = digest_by_tag
        .values()
        .filter(|at| graph.kept.contains(at))
        .count();
    Ok(RepositoryContent {
        kept,
        gone: indexes_first(gone, &children_by_index),
        children: children_by_index,
        blobs,
        kept_blobs,
    })
}

/// The config and the layers of an image; nothing for an index.
fn blobs_of(manifest: &Manifest) -> impl Iterator<Item = &Descriptor> {
    let (config, layers) = match manifest {
        Manifest::Image { config, layers, .. } => (config.as_ref(), &layers[..]),
        Manifest::Index(_) => (None, &[][..]),
    };
    config.into_iter().chain(layers)
}

/// The `count` newest tags of each shape, compared by their numbers. Tags without a number, such as
/// `latest`, and tags of referrers are left out.
fn newest<'a>(tags: impl Iterator<Item = &'a str>, count: usize) -> BTreeSet<&'a str> {
    let mut shapes: BTreeMap<String, Vec<(TagVersion, &str)>> = BTreeMap::new();
    for tag in tags.filter(|tag| tagged_subject(tag).is_none()) {
        if let Some(version) = TagVersion::parse(tag) {
            shapes
                .entry(version.shape().to_owned())
                .or_default()
                .push((version, tag));
        }
    }
    let newest = shapes.into_values().flat_map(|mut tags| {
        tags.sort_by(|(a, _), (b, _)| b.order(a));
        tags.into_iter().take(count).map(|(_, tag)| tag)
    });
    newest.collect()
}

/// Sorts manifests so that each index comes before its children, including children that it shares
/// with other indexes.
fn indexes_first(
    mut left: Vec<PrunedManifest>,
    children: &BTreeMap<Digest, Vec<Digest>>,
) -> Vec<PrunedManifest> {
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let named: BTreeSet<&Digest> = left
            .iter()
            .filter_map(|index| children.get(&index.digest))
            .flatten()
            .collect();
        let (later, next): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|manifest| named.contains(&manifest.digest));
        // only wrong digests lead here: two manifests cannot contain the digests of each other
        if next.is_empty() {
            sorted.extend(later);
            break;
        }
        sorted.extend(next);
        left = later;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_comes_before_its_children() {
        let digest = |name: &str| Digest::sha256(name.as_bytes());
        let manifests = ["a", "shared", "own", "nested", "b", "c"].map(|name| PrunedManifest {
            repository: "r".into(),
            digest: digest(name),
            tags: Vec::new(),
        });
        let children = [
            ("a", ["shared", "own"]),
            ("b", ["shared", "nested"]),
            ("c", ["nested", "elsewhere"]),
            ("nested", ["own", "elsewhere"]),
        ];
        let children = children.map(|(name, children)| {
            let children = children.into_iter().map(digest);
            (digest(name), children.collect())
        });
        let sorted = indexes_first(manifests.to_vec(), &children.into());
        let sorted: Vec<Digest> = sorted.into_iter().map(|one| one.digest).collect();
        let expected = ["a", "b", "c", "shared", "nested", "own"].map(digest);
        assert_eq!(sorted, expected);
    }

    #[test]
    fn the_newest_tags_of_each_shape_are_kept() {
        let signature = format!("sha256-{}.sig", "1".repeat(64));
        let tags = [
            "v1.9.0",
            "v1.10.0",
            "v1.8.9",
            "1.27-alpine",
            "1.28-alpine",
            "latest",
            &signature,
        ];
        let newest_tags = |count| {
            newest(tags.into_iter(), count)
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(newest_tags(1), ["1.28-alpine", "v1.10.0"]);
        assert_eq!(
            newest_tags(2),
            ["1.27-alpine", "1.28-alpine", "v1.10.0", "v1.9.0"]
        );
        assert!(newest_tags(0).is_empty());
    }
}
