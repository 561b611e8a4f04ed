//! Looks up references to images and charts: by tag or digest, by an alias of the host, at a
//! destination, or by path only.

use super::reference_index::{ReferenceIndex, ReferencedItem};
use crate::occurrence::ReferenceRole;
use landfall_model::{Destination, Digest, ImageRef, has_host, reference_names};
use std::collections::{BTreeMap, BTreeSet};

impl ReferenceIndex {
    /// Looks up the reference `text` in this `role`. With `pin`, the locked digest is added.
    pub fn lookup(&self, text: &str, role: ReferenceRole, pin: bool) -> ReferenceLookup {
        // nearly every scalar of a document returns here: parsing each of them would take most of
        // the time
        if !self.basenames.has(text) {
            return ReferenceLookup::Unknown;
        }
        let Ok(reference) = text.parse::<ImageRef>() else {
            return ReferenceLookup::Unknown;
        };
        let with_host = has_host(text);
        // a missing tag means `latest` only in these roles: in the other roles, a separate value
        // usually sets the tag
        let means_latest = !reference.is_pinned()
            && (role == ReferenceRole::Container || (role == ReferenceRole::Image && !with_host));
        let tag = if means_latest {
            Some("latest")
        } else {
            reference.tag.as_deref()
        };
        let query = ReferenceQuery {
            tag,
            digest: reference.digest.as_ref(),
            with_host,
        };
        let name = reference.name();
        let candidates: Vec<&IndexedRepository> = reference_names(&reference)
            .filter_map(|name| self.repositories.get(&name))
            .collect();
        let at_destination = self.settled.get(&name);
        let digest = |image: &IndexedImage| match &reference.digest {
            Some(digest) => self.replaced.get(digest).cloned(),
            None => (pin && tag.is_some()).then(|| self.delivered(&image.digest).clone()),
        };
        match candidates
            .iter()
            .find_map(|repository| repository.find(&query))
        {
            Some(Err(why)) => return ReferenceLookup::Left(why.0),
            Some(Ok((item, image))) => {
                return match image.to.first() {
                    None => {
                        ReferenceLookup::left("the site's registry.paths give it no destination")
                    }
                    Some(to) if to.to_string() == name => {
                        ReferenceLookup::resolved(item, None, digest(image))
                    }
                    // an earlier run may have written this name as the destination of the other
                    // item, so it must not be changed again
                    Some(_) if at_destination.is_some() => {
                        ReferenceLookup::left("this name is the destination of another locked item")
                    }
                    Some(to) => ReferenceLookup::resolved(item, Some(to.clone()), digest(image)),
                };
            }
            None => {}
        }
        if let Some(at_destination) = at_destination {
            return match at_destination.find(&query) {
                Some(Ok((item, image))) => ReferenceLookup::resolved(item, None, digest(image)),
                _ => ReferenceLookup::Settled(None),
            };
        }
        if let Some(why) = self.loss(&reference, tag) {
            return ReferenceLookup::left(why);
        }
        // `redis:6379` and `nginx` are often not images
        let is_certain = with_host || reference.digest.is_some() || role.is_image();
        let Some(repository) = candidates.first().filter(|_| is_certain) else {
            return ReferenceLookup::Unknown;
        };
        let locked = repository.listed();
        ReferenceLookup::Left(match (&reference.digest, tag) {
            (Some(_), _) => format!("the lock has this repository with other digests ({locked})"),
            (None, Some(_)) if means_latest => {
                format!("without a tag it means latest; the lock has {locked}")
            }
            (None, Some(_)) => format!("the lock has this repository only as {locked}"),
            (None, None) => "it names neither a host nor a tag".into(),
        })
    }

    /// The digest under which the locked `digest` was delivered: a trimmed index has its own
    /// digest.
    fn delivered<'d>(&'d self, digest: &'d Digest) -> &'d Digest {
        self.replaced.get(digest).unwrap_or(digest)
    }

    /// The reason why the lock has no digest for `reference` with the tag `tag`, if the lock lists
    /// the reference as missing or unresolved.
    fn loss(&self, reference: &ImageRef, tag: Option<&str>) -> Option<&str> {
        let mut full = reference_names(reference).map(|name| match tag {
            Some(tag) => format!("{name}:{tag}"),
            None => name,
        });
        full.find_map(|full| self.lost.get(&full))
            .map(String::as_str)
    }

    /// Lists the locked tags of the repository `name` for a message about an incomplete reference.
    /// `None` if the lock does not contain the repository, or if `name` may be any word.
    pub fn tags(&self, name: &str, role: ReferenceRole) -> Option<String> {
        self.basenames.has(name).then_some(())?;
        let reference = name
            .parse::<ImageRef>()
            .ok()
            .filter(|reference| !reference.is_pinned())?;
        if !has_host(name) && !role.is_image() {
            return None;
        }
        reference_names(&reference)
            .filter_map(|name| self.repositories.get(&name))
            .map(IndexedRepository::listed)
            .next()
    }

    /// The full name of the repository with this path on any host.
    pub fn by_path(&self, path: &str) -> Option<&str> {
        let reference: ImageRef = format!("h.invalid/{path}").parse().ok()?;
        self.basenames.has(path).then_some(())?;
        let mut names = self
            .repositories
            .values()
            .map(|repository| &*repository.name);
        names.find(|name| {
            let host = name
                .strip_suffix(&*reference.repository)
                .and_then(|host| host.strip_suffix('/'));
            host.is_some_and(|host| !host.contains('/'))
        })
    }
}

// The results of look-ups in the index.

/// The result of looking up a written reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceLookup {
    /// The lock does not contain the reference.
    Unknown,
    /// The reference already names the destination. The value is the item that the reference refers
    /// to, if that is certain.
    Settled(Option<String>),
    /// The reference concerns a locked item, but must not be changed, for this reason.
    Left(String),
    /// The reference refers to a locked item and must be changed.
    Known(ReferenceReplacement),
}

/// The item that a reference refers to, and the new parts of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceReplacement {
    /// The name of the item, or its repository if the reference has no tag.
    pub item: String,
    /// The new repository; `None` if it is kept.
    pub to: Option<Destination>,
    /// The new digest; `None` if no digest is added or changed.
    pub digest: Option<Digest>,
}

impl ReferenceLookup {
    /// The result for a reference to `item`.
    pub fn resolved(
        item: String,
        to: Option<Destination>,
        digest: Option<Digest>,
    ) -> ReferenceLookup {
        if to.is_none() && digest.is_none() {
            return ReferenceLookup::Settled(Some(item));
        }
        ReferenceLookup::Known(ReferenceReplacement { item, to, digest })
    }

    /// The result for a reference that must not be changed, for the reason `why`.
    pub fn left(why: impl Into<String>) -> ReferenceLookup {
        ReferenceLookup::Left(why.into())
    }
}

// The locked images of one repository, and which of them a reference refers to.

/// Repositories by their full name.
pub(super) type RepositoryMap = BTreeMap<String, IndexedRepository>;

/// A repository with locked images.
#[derive(Debug, Clone)]
pub(super) struct IndexedRepository {
    pub(super) name: String,
    pub(super) images: Vec<IndexedImage>,
}

/// A locked image in the index.
#[derive(Debug, Clone)]
pub(super) struct IndexedImage {
    name: ImageRef,
    pub(super) digest: Digest,
    /// The digests of the index, the trimmed index and their manifests.
    digests: BTreeSet<Digest>,
    /// The destinations of the image; references are changed to the first one. Empty if the site
    /// has an empty list for the image. In a reverse index, an image under its delivered name has
    /// its upstream repository as the only destination; under its upstream name it has none.
    pub(super) to: Vec<Destination>,
}

impl IndexedImage {
    pub(super) fn new(image: ReferencedItem<'_>, to: Vec<Destination>) -> IndexedImage {
        let digests = image.digests().cloned().collect();
        IndexedImage {
            name: image.name().clone(),
            digest: image.digest().clone(),
            digests,
            to,
        }
    }
}

/// The parts of a reference that select an image of a repository.
pub(super) struct ReferenceQuery<'a> {
    pub(super) tag: Option<&'a str>,
    pub(super) digest: Option<&'a Digest>,
    pub(super) with_host: bool,
}

/// The reason why a reference without a tag does not select one destination.
pub(super) struct AmbiguousReference(pub(super) String);

/// Adds `image` to the repository `name`.
pub(super) fn add(repositories: &mut RepositoryMap, name: String, image: IndexedImage) {
    let entry = repositories
        .entry(name.clone())
        .or_insert_with(|| IndexedRepository {
            name,
            images: Vec::new(),
        });
    entry.images.push(image);
}

impl IndexedRepository {
    /// The selected image, and the name of its item or, if the reference has neither tag nor
    /// digest, the name of its repository. A reference with a host, but with neither tag nor
    /// digest, selects the first image if all images have the same destination.
    pub(super) fn find(
        &self,
        query: &ReferenceQuery<'_>,
    ) -> Option<Result<(String, &IndexedImage), AmbiguousReference>> {
        let image = match (query.digest, query.tag) {
            (Some(digest), _) => self
                .images
                .iter()
                .find(|image| image.digests.contains(digest))?,
            (None, Some(tag)) => self
                .images
                .iter()
                .find(|image| image.name.tag.as_deref() == Some(tag))?,
            (None, None) if query.with_host => {
                let first = self.images.first()?;
                if self
                    .images
                    .iter()
                    .any(|image| image.to.first() != first.to.first())
                {
                    let why = format!("its tags ({}) have different destinations", self.listed());
                    return Some(Err(AmbiguousReference(why)));
                }
                return Some(Ok((first.name.name(), first)));
            }
            (None, None) => return None,
        };
        Some(Ok((image.name.to_string(), image)))
    }

    /// Lists the locked tags and digests for a message.
    pub(super) fn listed(&self) -> String {
        listed(self.images.iter().map(|image| (&image.name, &image.digest)))
    }
}

// Lists of locked tags and digests in messages.

/// The maximum number of tags or names that a message lists.
pub(super) const LISTED: usize = 4;

/// Lists the tags of `images`, which all belong to one repository. Images without a tag are listed
/// by digest.
pub(crate) fn listed<'i>(
    images: impl ExactSizeIterator<Item = (&'i ImageRef, &'i Digest)>,
) -> String {
    let count = images.len();
    let mut listed = Vec::new();
    for (name, digest) in images.take(LISTED) {
        listed.push(match &name.tag {
            Some(tag) => tag.clone(),
            None => format!("@{}:{}…", digest.algorithm().as_str(), digest.short(12)),
        });
    }
    if count > LISTED {
        listed.push(format!("{} more", count - LISTED));
    }
    listed.join(", ")
}
