//! Searches a repository for the referrers of a manifest: by cosign's tags and by the lists of OCI.
//! A request that fails never counts as "none": if a referrer is known to exist, its failure is
//! recorded as a loss, otherwise it is an error. The one exception is 403 for a guessed tag, since
//! some registries answer 403 for tags that do not exist.

use super::locked::LockedImage;
use super::manifests::{ImageManifest, ManifestBudget, fetch_one};
use crate::resolver::{LostReferrer, ResolveError, Resolver};
use landfall_content::registry::{FetchedManifest, ListedReferrers, RegistrySession, referrers_in};
use landfall_http::{ErrorKind, HttpError};
use landfall_model::report::one_line;
use landfall_model::{
    Descriptor, Digest, ImageRef, Manifest, cosign_tags, human_size, locked, read_referrer,
    referrers_tag, unreadable_children,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The referrers that an earlier look-up found.
#[derive(Default)]
pub(super) struct PreviousReferrers<'a> {
    /// Whether there was an earlier look-up.
    is_looked_up: bool,
    /// Manifests that had no referrer.
    unreferred: BTreeSet<Digest>,
    /// The referrers with a cosign tag, by tag.
    tagged: BTreeMap<&'a str, Descriptor>,
    /// The digests of all referrers.
    digests: BTreeSet<&'a Digest>,
}

impl<'a> PreviousReferrers<'a> {
    /// The referrers of `image`. With `is_partial`, the earlier look-up could not read all
    /// referrers, so a manifest without one may have one.
    pub(super) fn new(image: &'a LockedImage, is_partial: bool) -> PreviousReferrers<'a> {
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
                .filter(|digest| !is_partial && !subjects.contains(digest) && !is_tagged(digest))
                .cloned()
                .collect(),
            tagged,
            digests: referrers.iter().map(|one| &one.digest).collect(),
        }
    }
}

/// A referrer, and the tag under which it was found.
pub(super) struct FoundReferrer {
    pub(super) fetched: ImageManifest,
    pub(super) tag: Option<String>,
}

/// A search for the referrers of an image in its repository.
pub(super) struct ReferrerSearch<'a> {
    resolver: &'a Resolver,
    name: &'a ImageRef,
    known: &'a PreviousReferrers<'a>,
    session: Arc<RegistrySession>,
    /// All tags of the repository; `None` if each tag is requested on its own.
    tags: Option<Arc<BTreeSet<String>>>,
    pub(super) budget: ManifestBudget,
    /// The number of entries in all lists of referrers that were read so far.
    listed: AtomicUsize,
    /// The referrers that exist and cannot be read, by digest or tag.
    lost: Mutex<BTreeMap<String, ResolveError>>,
}

impl<'a> ReferrerSearch<'a> {
    pub(super) async fn new(
        resolver: &'a Resolver,
        name: &'a ImageRef,
        known: &'a PreviousReferrers<'a>,
        manifests: usize,
    ) -> Result<ReferrerSearch<'a>, ResolveError> {
        let session = resolver.sessions.upstream(&name.registry).await?;
        let tags = listed_tags(resolver, name, manifests, known.is_looked_up).await?;
        Ok(ReferrerSearch {
            resolver,
            name,
            known,
            session,
            tags,
            budget: ManifestBudget::new(resolver.limits()),
            listed: AtomicUsize::new(0),
            lost: Mutex::default(),
        })
    }

    /// Records that the referrer with this digest or tag cannot be read. Fails if the old lock has
    /// it: the old lock is better than one without it.
    pub(super) fn lose(&self, reference: String, cause: ResolveError) -> Result<(), ResolveError> {
        let is_known = self.known.tagged.contains_key(&*reference)
            || reference
                .parse()
                .is_ok_and(|digest: Digest| self.known.digests.contains(&digest));
        if is_known {
            return Err(cause.about(&reference));
        }
        locked(&self.lost).entry(reference).or_insert(cause);
        Ok(())
    }

    /// The referrers that cannot be read.
    pub(super) fn into_lost(self) -> Vec<LostReferrer> {
        let lost = std::mem::take(&mut *locked(&self.lost));
        lost.into_iter()
            .map(|(reference, cause)| LostReferrer { reference, cause })
            .collect()
    }

    /// Fetches the referrers of `subject`.
    pub(super) async fn find(&self, subject: &Digest) -> Result<Vec<FoundReferrer>, ResolveError> {
        // with a list of tags, a search for cosign's tags costs no request
        let searches_tags = self.tags.is_some() || !self.known.unreferred.contains(subject);
        let tags = cosign_tags(subject)
            .into_iter()
            .filter(|_| searches_tags)
            .map(|tag| self.fetch_tagged(tag));
        let tagged = futures_util::future::try_join_all(tags).await?;
        let mut found: Vec<FoundReferrer> = tagged.into_iter().flatten().collect();
        let mut listed: BTreeMap<Digest, Descriptor> = BTreeMap::new();
        let limits = self.resolver.limits();
        let answer = self.listed_referrers(subject).await?;
        for child in answer.unreadable {
            let reference = if child.digest.is_empty() {
                format!("of {subject} without a digest")
            } else {
                one_line(&child.digest)
            };
            self.lose(reference, child.why.into())?;
        }
        for descriptor in answer.found {
            if descriptor.size > limits.manifest_bytes as u64 {
                let size = human_size(descriptor.size);
                let cause = format!("its manifest has {size}, which is more than any manifest");
                self.lose(descriptor.digest.to_string(), cause.into())?;
                continue;
            }
            listed.insert(descriptor.digest.clone(), descriptor);
        }
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
        let fetched = futures_util::future::join_all(fetching).await;
        for (digest, fetched) in listed.keys().zip(fetched) {
            let fetched = match fetched {
                Ok(fetched) => fetched,
                Err(cause) => {
                    self.lose(digest.to_string(), cause)?;
                    continue;
                }
            };
            // a stale list may name manifests of other subjects: only the `subject` field counts
            if fetched.subject.as_ref() == Some(subject) {
                found.push(FoundReferrer { fetched, tag: None });
            } else {
                self.resolver.progress.note(&format!(
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
            .await;
        let fetched = match raw {
            Ok(raw) => {
                let size = raw.bytes.len() as u64;
                self.budget
                    .spend(self.resolver.limits(), std::iter::once(size))?;
                parse(raw).map_err(ResolveError::from)
            }
            Err(cause) => Err(cause),
        };
        match fetched {
            Ok(fetched) => Ok(Some(FoundReferrer {
                fetched,
                tag: Some(tag),
            })),
            Err(cause) => {
                self.lose(tag, cause)?;
                Ok(None)
            }
        }
    }

    /// Treats 403 for a guessed tag as "not found", with a note. Some registries answer 403 for
    /// tags that do not exist, even to an account that can read the repository. This account can:
    /// it has read the image.
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
    async fn listed_referrers(&self, subject: &Digest) -> Result<ListedReferrers, ResolveError> {
        let repository = &self.name.repository;
        let by_api = if self.known.unreferred.contains(subject) {
            Some(ListedReferrers::default())
        } else {
            self.resolver
                .repositories
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
            found
                .found
                .extend(entries.into_iter().map(|child| child.descriptor));
            found.unreadable.extend(unreadable_children(&list.bytes));
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
    let session = resolver.sessions.upstream(&name.registry).await?;
    let repositories = &resolver.repositories;
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

pub(super) fn too_many_referrers(limit: usize) -> ResolveError {
    format!("there are more than {limit} of them").into()
}

pub(super) fn parse(raw: FetchedManifest) -> Result<ImageManifest, String> {
    let (manifest, media_type) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())
        .map_err(|error| error.to_string())?;
    let descriptor = Descriptor::new(raw.digest, raw.bytes.len() as u64, media_type);
    let subject = read_referrer(&raw.bytes, &descriptor).map(|referring| referring.subject);
    Ok(ImageManifest {
        descriptor,
        manifest,
        subject,
    })
}
