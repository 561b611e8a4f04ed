//! Looks up references to images and charts: by tag or digest, by an alias of the host, at a
//! destination, or by path only.

use super::lookup_result::ReferenceLookup;
use super::reference_index::ReferenceIndex;
use super::repository::{IndexedImage, IndexedRepository, ReferenceQuery};
use crate::role::ReferenceRole;
use landfall_model::reference_names;
use landfall_model::{Digest, ImageRef, has_host};

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
