//! Surveys one repository: the manifests of its tags, and manifests that nothing needs.

use super::needed::Needed;
use crate::push::receipt::PrunedManifest;
use landfall_content::registry::RegistrySession;
use landfall_content::run_concurrently;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Digest, Limits, Manifest, TagVersion, media_type, tagged_subject};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The content of a repository.
#[derive(Debug)]
pub(super) struct RepositoryContent {
    /// The number of tags that are kept.
    pub(super) kept: usize,
    /// The manifests that may be deleted, in this order: all indexes that name a manifest come
    /// before it.
    pub(super) gone: Vec<PrunedManifest>,
    /// The children of each index that may be deleted.
    pub(super) children: BTreeMap<Digest, Vec<Digest>>,
    /// The blobs of each image that may be deleted, with their sizes.
    pub(super) blobs: BTreeMap<Digest, Vec<(Digest, u64)>>,
    /// The blobs of images that are kept and are not in a lock.
    pub(super) kept_blobs: BTreeSet<Digest>,
}

/// Surveys `repository`. Deletes nothing.
pub(super) async fn survey(
    session: &RegistrySession,
    repository: &str,
    needed: &Needed,
    keep_last: usize,
    limits: &Limits,
) -> Result<RepositoryContent, HttpError> {
    let Some(tags) = session.tags(repository, limits.pages).await? else {
        let message = format!(
            "{} does not list its tags: it does not exist, or this account may not read it",
            session.host()
        );
        return Err(HttpError::new(ErrorKind::Invalid, message).about(repository.to_owned()));
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
    let mut survey = Survey {
        session,
        repository,
        documents: HashMap::new(),
        kept: BTreeSet::new(),
    };
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
            survey.keep(digest).await?;
        }
    }
    // Referrers of kept manifests are kept, with everything that they name. That may keep further
    // referrers, such as the signature of an SBOM, so it is repeated until nothing is added.
    loop {
        let before = survey.kept.len();
        for (tag, digest) in &digest_by_tag {
            if !survey.kept.contains(digest) && survey.refers_to_kept(tag, digest).await? {
                survey.keep(digest).await?;
            }
        }
        if survey.kept.len() == before {
            break;
        }
    }
    survey.into_content(&digest_by_tag, &needed.locked).await
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

struct Survey<'a> {
    session: &'a RegistrySession,
    repository: &'a str,
    /// Manifests that were read; `None` if the registry does not have the digest.
    documents: HashMap<Digest, Option<Manifest>>,
    /// The manifests that are kept.
    kept: BTreeSet<Digest>,
}

impl Survey<'_> {
    async fn read(&mut self, digest: &Digest) -> Result<Option<&Manifest>, HttpError> {
        if !self.documents.contains_key(digest) {
            let read = match self
                .session
                .manifest(self.repository, &digest.to_string())
                .await
            {
                Ok(raw) => {
                    let parsed = Manifest::parse(&raw.bytes, raw.content_type.as_deref())
                        .map_err(|error| HttpError::new(ErrorKind::Invalid, format!("{error}")));
                    Some(
                        parsed
                            .map_err(|error| error.about(format!("{}@{digest}", self.repository)))?
                            .0,
                    )
                }
                Err(error) if error.kind == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            self.documents.insert(digest.clone(), read);
        }
        Ok(self.documents.get(digest).and_then(Option::as_ref))
    }

    /// Keeps a manifest and, if it is an index, all its descendants.
    async fn keep(&mut self, digest: &Digest) -> Result<(), HttpError> {
        let mut todo = vec![digest.clone()];
        while let Some(digest) = todo.pop() {
            if !self.kept.insert(digest.clone()) {
                continue;
            }
            if let Some(Manifest::Index(children)) = self.read(&digest).await? {
                let (indexes, others): (Vec<_>, Vec<_>) = children
                    .iter()
                    .map(|child| child.descriptor.clone())
                    .partition(|child| media_type::is_index(&child.media_type));
                todo.extend(indexes.into_iter().map(|child| child.digest));
                // images have no children, so they need not be read
                self.kept
                    .extend(others.into_iter().map(|child| child.digest));
            }
        }
        Ok(())
    }

    /// Whether a tag refers to a manifest that is kept, by its form (cosign's tags and lists of
    /// referrers) or by the subject of its manifest.
    async fn refers_to_kept(&mut self, tag: &str, digest: &Digest) -> Result<bool, HttpError> {
        if let Some(subject) = tagged_subject(tag) {
            return Ok(self
                .kept
                .iter()
                .any(|kept| kept.to_string().starts_with(&subject.digest)));
        }
        let subject = match self.read(digest).await? {
            Some(Manifest::Image {
                subject: Some(subject),
                ..
            }) => subject.digest.clone(),
            _ => return Ok(false),
        };
        Ok(self.kept.contains(&subject))
    }

    /// Separates the content that is kept from the manifests that may be deleted: manifests of tags
    /// that are not kept, their children and their referrers.
    async fn into_content(
        mut self,
        digest_by_tag: &BTreeMap<&str, Digest>,
        locked: &BTreeSet<Digest>,
    ) -> Result<RepositoryContent, HttpError> {
        let mut gone: Vec<PrunedManifest> = Vec::new();
        let mut blobs = BTreeMap::new();
        let mut children_by_index = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut todo: Vec<Digest> = digest_by_tag
            .values()
            .filter(|at| !self.kept.contains(at))
            .rev()
            .cloned()
            .collect();
        while let Some(digest) = todo.pop() {
            if self.kept.contains(&digest) || !seen.insert(digest.clone()) {
                continue;
            }
            let mut next = match self.read(&digest).await? {
                None => continue,
                Some(Manifest::Index(children)) => {
                    let children = children.iter().map(|child| child.descriptor.digest.clone());
                    let children: Vec<Digest> = children.collect();
                    children_by_index.insert(digest.clone(), children.clone());
                    children
                }
                Some(Manifest::Image { config, layers, .. }) => {
                    let image_blobs = std::iter::once(config)
                        .chain(layers)
                        .map(|blob| (blob.digest.clone(), blob.size))
                        .collect();
                    blobs.insert(digest.clone(), image_blobs);
                    Vec::new()
                }
            };
            // Without a referrers API (`None`), the list of referrers is an index with a tag, which
            // is surveyed like every tag.
            let referrers = self
                .session
                .referrers(self.repository, &digest, false)
                .await?;
            next.extend(
                referrers
                    .into_iter()
                    .flatten()
                    .map(|referrer| referrer.digest),
            );
            todo.extend(next.into_iter().rev());
            let tags = digest_by_tag.iter().filter(|(_, at)| **at == digest);
            let tags = tags.map(|(tag, _)| (*tag).to_owned()).collect();
            gone.push(PrunedManifest {
                repository: self.repository.to_owned(),
                digest,
                tags,
            });
        }
        let mut kept_blobs = BTreeSet::new();
        for digest in self.kept.clone().difference(locked) {
            if let Some(Manifest::Image { config, layers, .. }) = self.read(digest).await? {
                kept_blobs.extend(
                    std::iter::once(config)
                        .chain(layers)
                        .map(|blob| blob.digest.clone()),
                );
            }
        }
        let kept = digest_by_tag
            .values()
            .filter(|at| self.kept.contains(at))
            .count();
        Ok(RepositoryContent {
            kept,
            gone: indexes_first(gone, &children_by_index),
            children: children_by_index,
            blobs,
            kept_blobs,
        })
    }
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
