//! Looks up the referrers of an image: the cosign tags and OCI referrers of the index, of each
//! locked manifest, and of each referrer. A look-up that fails is an error; it never counts as
//! "none". The one exception is 403 for a guessed tag, since some registries answer 403 for tags
//! that do not exist.

use super::locked::{LockedImage, LockedReferrer};
use super::manifests::{
    ImageManifest, ManifestBudget, blobs_of, fetch_below, fetch_one, is_manifest,
};
use crate::resolver::{ResolveError, Resolver};
use landfall_content::registry::{FetchedManifest, RegistrySession, referrers_in};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{
    ChildManifest, Descriptor, Digest, ImageRef, Manifest, cosign_tags, read_referrer,
    referrers_tag,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the image with its referrers looked up again, or without any if `is_requested` is false.
///
/// If `image` has its referrers from an earlier look-up, the registry is not queried again for the
/// referrers of a child or referrer that had none. Otherwise a nightly run would send a request for
/// each child of each image. Tags that a repository lists are always searched.
pub(super) async fn look_up(
    resolver: &Resolver,
    image: &LockedImage,
    is_requested: bool,
) -> Result<LockedImage, ResolveError> {
    let bare = LockedImage {
        referrers: None,
        referrer_blobs: Vec::new(),
        ..image.clone()
    };
    if !is_requested {
        return Ok(bare);
    }
    let known = PreviousReferrers::new(image);
    search(resolver, bare, &known).await.map_err(|cause| {
        let ResolveError {
            recorded,
            message,
            is_temporary,
            ..
        } = cause.about("its signatures and other referrers");
        let message = format!("{message}; `referrers: false` in the manifest omits them");
        // the image itself was found, so it must not be treated as deleted upstream
        ResolveError {
            recorded,
            message,
            is_gone: false,
            is_temporary,
        }
    })
}

/// The referrers that an earlier look-up found.
#[derive(Default)]
struct PreviousReferrers<'a> {
    /// Whether there was an earlier look-up.
    is_looked_up: bool,
    /// Manifests that had no referrer.
    unreferred: BTreeSet<Digest>,
    /// The referrers with a cosign tag, by tag.
    tagged: BTreeMap<&'a str, Descriptor>,
}

impl<'a> PreviousReferrers<'a> {
    fn new(image: &'a LockedImage) -> PreviousReferrers<'a> {
        let Some(referrers) = &image.referrers else {
            return PreviousReferrers::default();
        };
        let subjects: BTreeSet<&Digest> = referrers
            .iter()
            .filter_map(|one| one.subject.as_ref())
            .collect();
        let digests = image.manifests.iter().map(|child| &child.digest);
        let digests = digests.chain(referrers.iter().map(|one| &one.digest));
        let tagged = referrers
            .iter()
            .filter_map(|one| Some((one.tag.as_deref()?, one.descriptor())));
        let tagged: BTreeMap<&str, Descriptor> = tagged.collect();
        // a signature of cosign has no `subject` field: only its tag names the manifest
        let is_tagged = |digest: &Digest| {
            let tags = cosign_tags(digest);
            tags.iter().any(|tag| tagged.contains_key(tag.as_str()))
        };
        PreviousReferrers {
            is_looked_up: true,
            unreferred: digests
                .filter(|digest| !subjects.contains(digest) && !is_tagged(digest))
                .cloned()
                .collect(),
            tagged,
        }
    }
}

/// A referrer, and the tag under which it was found.
struct FoundReferrer {
    fetched: ImageManifest,
    tag: Option<String>,
}

/// A referrer with all its tags. If a referrer is an index, each manifest below it is also a node,
/// without tags.
struct ReferrerNode {
    fetched: ImageManifest,
    tags: BTreeSet<String>,
}

impl ReferrerNode {
    fn new(fetched: ImageManifest) -> ReferrerNode {
        ReferrerNode {
            fetched,
            tags: BTreeSet::new(),
        }
    }
}

/// Searches for referrers level by level. The first level consists of the manifests of `image`.
async fn search(
    resolver: &Resolver,
    image: LockedImage,
    known: &PreviousReferrers<'_>,
) -> Result<LockedImage, ResolveError> {
    let own: Vec<Digest> = image
        .manifests_in_order()
        .map(|manifest| manifest.digest)
        .collect();
    let repository = ReferrerSearch::new(resolver, &image.name, known, own.len()).await?;
    let limits = resolver.limits();
    let mut seen: BTreeSet<Digest> = own.iter().cloned().collect();
    let mut nodes: BTreeMap<Digest, ReferrerNode> = BTreeMap::new();
    // The top is looked up before the others: its response shows whether the registry has the
    // referrers API, so that not every request has to find out.
    let mut level: Vec<Digest> = own.into_iter().rev().collect();
    // after the allowed levels, one more pass shows that nothing refers to the last level
    for _ in 0..=limits.index_depth {
        let Some((first, others)) = level.split_first() else {
            break;
        };
        let mut found_referrers = repository.find(first).await?;
        let others = others.iter().map(|subject| repository.find(subject));
        for found in futures_util::future::try_join_all(others).await? {
            found_referrers.extend(found);
        }
        // referrers may have referrers of their own, which are the next level
        level = Vec::new();
        for FoundReferrer { fetched, tag } in found_referrers {
            let digest = fetched.descriptor.digest.clone();
            // a referrer may be an index, such as one signature for each platform
            let children = match &fetched.manifest {
                Manifest::Index(children) if !seen.contains(&digest) => children.clone(),
                _ => Vec::new(),
            };
            let children: Vec<&ChildManifest> =
                children.iter().filter(|child| is_manifest(child)).collect();
            let below =
                fetch_below(resolver, &image.name, &children, &seen, &repository.budget).await?;
            // one manifest may be found by several tags, and by the referrers API
            let node = nodes
                .entry(digest.clone())
                .or_insert_with(|| ReferrerNode::new(fetched));
            node.tags.extend(tag);
            if seen.insert(digest.clone()) {
                level.push(digest);
            }
            for (digest, fetched) in below {
                if seen.insert(digest.clone()) {
                    level.push(digest.clone());
                    nodes.insert(digest, ReferrerNode::new(fetched));
                }
            }
            if nodes.len() > limits.referrers {
                return Err(too_many_referrers(limits.referrers));
            }
        }
    }
    if !level.is_empty() {
        return Err(format!(
            "they refer to each other in a chain of more than {}",
            limits.index_depth
        )
        .into());
    }
    Ok(attach(image, &nodes))
}

/// A search for the referrers of an image in its repository.
struct ReferrerSearch<'a> {
    resolver: &'a Resolver,
    name: &'a ImageRef,
    known: &'a PreviousReferrers<'a>,
    session: Arc<RegistrySession>,
    /// All tags of the repository; `None` if each tag is requested on its own.
    tags: Option<Arc<BTreeSet<String>>>,
    budget: ManifestBudget,
    /// The number of entries in all lists of referrers that were read so far.
    listed: AtomicUsize,
}

impl<'a> ReferrerSearch<'a> {
    async fn new(
        resolver: &'a Resolver,
        name: &'a ImageRef,
        known: &'a PreviousReferrers<'a>,
        manifests: usize,
    ) -> Result<ReferrerSearch<'a>, ResolveError> {
        let session = resolver.sessions().upstream(&name.registry).await?;
        let tags = listed_tags(resolver, name, manifests, known.is_looked_up).await?;
        Ok(ReferrerSearch {
            resolver,
            name,
            known,
            session,
            tags,
            budget: ManifestBudget::new(resolver.limits()),
            listed: AtomicUsize::new(0),
        })
    }

    /// Fetches the referrers of `subject`.
    async fn find(&self, subject: &Digest) -> Result<Vec<FoundReferrer>, ResolveError> {
        // with a list of tags, a search for cosign's tags costs no request
        let searches_tags = self.tags.is_some() || !self.known.unreferred.contains(subject);
        let tags = cosign_tags(subject)
            .into_iter()
            .filter(|_| searches_tags)
            .map(|tag| self.fetch_tagged(tag));
        let tagged = futures_util::future::try_join_all(tags).await?;
        let mut found: Vec<FoundReferrer> = tagged.into_iter().flatten().collect();
        let mut listed: BTreeMap<Digest, Descriptor> = BTreeMap::new();
        for descriptor in self.listed_referrers(subject).await? {
            listed.insert(descriptor.digest.clone(), descriptor);
        }
        let limits = self.resolver.limits();
        // The entries are counted before they are requested: a list may name any number of
        // manifests, which need not refer to `subject`.
        let before = self.listed.fetch_add(listed.len(), Ordering::Relaxed);
        if before + listed.len() > limits.referrers {
            return Err(too_many_referrers(limits.referrers));
        }
        self.budget
            .spend(limits, listed.values().map(|listed| listed.size))?;
        let fetching = listed
            .values()
            .map(|listed| fetch_one(self.resolver, self.name, listed));
        for fetched in futures_util::future::try_join_all(fetching).await? {
            // a stale list may name manifests of other subjects: only the `subject` field counts
            if fetched.subject.as_ref() == Some(subject) {
                found.push(FoundReferrer { fetched, tag: None });
            } else {
                self.resolver.progress().note(&format!(
                    "{}: {} is listed as a referrer of {subject}, but does not refer to it",
                    self.name.name(),
                    fetched.descriptor.digest
                ));
            }
        }
        Ok(found)
    }

    /// The manifest at a tag of the cosign convention, if there is one.
    async fn fetch_tagged(&self, tag: String) -> Result<Option<FoundReferrer>, ResolveError> {
        if self.tags.as_ref().is_some_and(|tags| !tags.contains(&tag)) {
            return Ok(None);
        }
        let known = self.known.tagged.get(tag.as_str());
        let mut unchanged = None;
        // HEAD shows whether a guessed tag exists, and whether the manifest of a known tag is
        // unchanged. An unchanged manifest is read from the store. A listed tag that is not known
        // is fetched without HEAD.
        if self.tags.is_none() || known.is_some() {
            let response = self
                .session
                .head_manifest(&self.name.repository, &tag, false)
                .await;
            // a tag that existed earlier is not a guess, so 403 is an error
            let digest = match known {
                Some(_) => response?,
                None => self.allow_forbidden(response)?,
            };
            let Some(digest) = digest else {
                return Ok(None);
            };
            unchanged = known.filter(|known| known.digest == digest);
        }
        let reference = unchanged.map_or_else(|| tag.clone(), |known| known.digest.to_string());
        let raw = self
            .resolver
            .manifest(self.name, &reference, unchanged)
            .await?;
        self.budget.spend(
            self.resolver.limits(),
            std::iter::once(raw.bytes.len() as u64),
        )?;
        let fetched = parse(raw).map_err(|why| ResolveError::from(format!("{tag}: {why}")))?;
        Ok(Some(FoundReferrer {
            fetched,
            tag: Some(tag),
        }))
    }

    /// Treats 403 for a guessed tag as "not found", with a note. Some registries answer 403 for tags
    /// that do not exist, even to an account that can read the repository. This account can: it has
    /// read the image.
    fn allow_forbidden<T>(
        &self,
        response: Result<Option<T>, HttpError>,
    ) -> Result<Option<T>, HttpError> {
        match response {
            Err(error) if error.status == Some(403) && error.kind == ErrorKind::Denied => {
                self.resolver.note_once(&format!(
                    "{}: the registry answers 403 for tags of signatures and other referrers, and \
                     lists no tags; landfall assumes that there are none",
                    self.name.name()
                ));
                Ok(None)
            }
            other => other,
        }
    }

    /// The listed referrers of `subject`: from the referrers API, otherwise from the index that
    /// clients maintain under a tag (the "referrers tag schema" of the OCI distribution
    /// specification). If the list of tags shows that there is such an index, both count.
    async fn listed_referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, ResolveError> {
        let repository = &self.name.repository;
        let by_api = if self.known.unreferred.contains(subject) {
            Some(Vec::new())
        } else {
            self.resolver
                .repositories()
                .referrers(&self.session, repository, subject)
                .await?
        };
        let list = match &self.tags {
            // the list of tags says whether there is such an index
            Some(tags) if tags.contains(&referrers_tag(subject)) => {
                self.session.referrers_list(repository, subject).await?
            }
            Some(_) => None,
            // clients maintain the index only for registries without the API
            None if by_api.is_none() => {
                self.allow_forbidden(self.session.referrers_list(repository, subject).await)?
            }
            None => None,
        };
        let mut found = by_api.unwrap_or_default();
        if let Some(list) = list {
            let entries = referrers_in(&list.bytes).map_err(|error| error.to_string())?;
            found.extend(entries.into_iter().map(|child| child.descriptor));
        }
        Ok(found)
    }
}

/// All tags of an image's repository, if listing them takes no more requests than requesting each
/// possible signature tag. The list of a mirror counts only if the site says that it is complete,
/// since the mirror may be a cache; a list that lacks the image's own tag does not count. A
/// repository is listed once per run, and not at all if `is_looked_up` is true and an earlier run
/// found the list too long.
pub(super) async fn listed_tags(
    resolver: &Resolver,
    name: &ImageRef,
    manifests: usize,
    is_looked_up: bool,
) -> Result<Option<Arc<BTreeSet<String>>>, ResolveError> {
    let session = resolver.sessions().upstream(&name.registry).await?;
    let repositories = resolver.repositories();
    let pages = repositories.pages_worth_reading(name, manifests, resolver.limits());
    if !session.lists_all_tags()
        || (is_looked_up && repositories.has_more_pages_than(&session, name, pages))
    {
        return Ok(None);
    }
    let tags = resolver.tags(name, pages).await?;
    // a list without the tag that was just read is not complete
    Ok(tags.filter(|tags| name.tag.as_ref().is_none_or(|own| tags.contains(own))))
}

fn too_many_referrers(limit: usize) -> ResolveError {
    format!("there are more than {limit} of them").into()
}

fn parse(raw: FetchedManifest) -> Result<ImageManifest, String> {
    let (manifest, media_type) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())
        .map_err(|error| error.to_string())?;
    let descriptor = Descriptor {
        digest: raw.digest,
        size: raw.bytes.len() as u64,
        media_type: media_type.into(),
    };
    let subject = read_referrer(&raw.bytes, &descriptor).map(|referring| referring.subject);
    Ok(ImageManifest {
        descriptor,
        manifest,
        subject,
    })
}

/// Adds the referrers to the image: children before parents, otherwise by digest and tag.
fn attach(image: LockedImage, nodes: &BTreeMap<Digest, ReferrerNode>) -> LockedImage {
    fn visit(
        digest: &Digest,
        nodes: &BTreeMap<Digest, ReferrerNode>,
        seen: &mut BTreeSet<Digest>,
        out: &mut Vec<LockedReferrer>,
    ) {
        let Some(node) = nodes.get(digest).filter(|_| seen.insert(digest.clone())) else {
            return;
        };
        if let Manifest::Index(children) = &node.fetched.manifest {
            for child in children {
                visit(&child.descriptor.digest, nodes, seen, out);
            }
        }
        let Descriptor {
            digest,
            size,
            media_type,
        } = node.fetched.descriptor.clone();
        let subject = node.fetched.subject.clone();
        let bare = LockedReferrer {
            digest,
            size,
            media_type,
            tag: None,
            subject,
        };
        // the lock has one record for each tag, or one without a tag
        if node.tags.is_empty() {
            out.push(bare.clone());
        }
        out.extend(node.tags.iter().map(|tag| LockedReferrer {
            tag: Some(tag.clone()),
            ..bare.clone()
        }));
    }
    let mut seen = BTreeSet::from([image.digest.clone()]);
    let mut referrers = Vec::new();
    for digest in nodes.keys() {
        visit(digest, nodes, &mut seen, &mut referrers);
    }
    let mut blobs = blobs_of(nodes.values().map(|node| &node.fetched.manifest), &[]);
    // not a binary search: a lock that was edited by hand may not be sorted
    let own: BTreeSet<&Digest> = image.blobs.iter().map(|blob| &blob.digest).collect();
    blobs.retain(|blob| !own.contains(&blob.digest));
    LockedImage {
        referrers: Some(referrers),
        referrer_blobs: blobs,
        ..image
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Memory;
    use super::*;
    use landfall_content::BlobRead;
    use serde_json::json;

    #[test]
    fn blobs_of_the_image_are_not_repeated_even_if_they_are_not_sorted() {
        let mut memory = Memory::default();
        let mut blobs = Vec::new();
        let mut nodes = BTreeMap::new();
        for name in ["a", "b", "c", "d"] {
            let (top, own) = memory.manifest(name, &json!({}));
            blobs.extend(own);
            let bytes = memory.read(&top).unwrap();
            let raw = FetchedManifest {
                bytes: bytes.into(),
                content_type: Some(top.media_type.to_string()),
                digest: top.digest.clone(),
            };
            nodes.insert(top.digest, ReferrerNode::new(parse(raw).unwrap()));
        }
        blobs.sort_by(|a, b| b.digest.cmp(&a.digest));
        let image = LockedImage {
            blobs,
            ..LockedImage::new("h.test/app:v1".parse().unwrap(), memory.put(b"top", "x/y"))
        };
        let attached = attach(image, &nodes);
        assert_eq!(attached.referrers.map(|found| found.len()), Some(4));
        assert_eq!(attached.referrer_blobs, []);
    }
}
