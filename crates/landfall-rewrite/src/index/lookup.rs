//! Looks up references to images: by tag or digest, by an alias, at a destination, or by their path
//! alone.

use super::answer::Lookup;
use super::reference_index::ReferenceIndex;
use super::repository::{Asked, IndexedImage, Repository};
use crate::role::Role;
use landfall_model::reference_names;
use landfall_model::{Digest, ImageRef, has_host};

impl ReferenceIndex {
    /// What the reference written as `text` means in this `role`. With `pin`, its digest is added.
    pub fn lookup(&self, text: &str, role: Role, pin: bool) -> Lookup {
        if !self.basenames.has(text) {
            return Lookup::Unknown;
        }
        let Ok(reference) = text.parse::<ImageRef>() else {
            return Lookup::Unknown;
        };
        let with_host = has_host(text);
        let means_latest = !reference.is_pinned()
            && (role == Role::Container || (role == Role::Image && !with_host));
        let tag = if means_latest {
            Some("latest")
        } else {
            reference.tag.as_deref()
        };
        let asked = Asked {
            tag,
            digest: reference.digest.as_ref(),
            with_host,
        };
        let name = reference.name();
        let candidates: Vec<&Repository> = reference_names(&reference)
            .filter_map(|name| self.repositories.get(&name))
            .collect();
        let there = self.settled.get(&name);
        let digest = |image: &IndexedImage| match &reference.digest {
            Some(digest) => self.replaced.get(digest).cloned(),
            None => (pin && tag.is_some()).then(|| self.delivered(&image.digest).clone()),
        };
        match candidates
            .iter()
            .find_map(|repository| repository.find(&asked))
        {
            Some(Err(why)) => return Lookup::Left(why.0),
            Some(Ok((item, image))) => {
                return match image.to.first() {
                    None => Lookup::left("the site's registry.paths give it no destination"),
                    Some(to) if to.to_string() == name => Lookup::of(item, None, digest(image)),
                    // the next run would change it again
                    Some(_) if there.is_some() => {
                        Lookup::left("another locked item goes to this name")
                    }
                    Some(to) => Lookup::of(item, Some(to.clone()), digest(image)),
                };
            }
            None => {}
        }
        if let Some(there) = there {
            return match there.find(&asked) {
                Some(Ok((item, image))) => Lookup::of(item, None, digest(image)),
                _ => Lookup::Settled(None),
            };
        }
        if let Some(why) = self.loss(&reference, tag) {
            return Lookup::left(why);
        }
        // `redis:6379` and `nginx` are words as often as images
        let sure = with_host || reference.digest.is_some() || role.is_image();
        let Some(repository) = candidates.first().filter(|_| sure) else {
            return Lookup::Unknown;
        };
        let locked = repository.listed();
        Lookup::Left(match (&reference.digest, tag) {
            (Some(_), _) => format!("the lock has this repository with other digests ({locked})"),
            (None, Some(_)) if means_latest => {
                format!("without a tag it means latest; the lock has {locked}")
            }
            (None, Some(_)) => format!("the lock has this repository only as {locked}"),
            (None, None) => "it names neither a host nor a tag".into(),
        })
    }

    /// The digest under which the locked `digest` was delivered.
    fn delivered<'d>(&'d self, digest: &'d Digest) -> &'d Digest {
        self.replaced.get(digest).unwrap_or(digest)
    }

    /// Why the lock has `reference`, read with `tag`, without a digest, if so.
    fn loss(&self, reference: &ImageRef, tag: Option<&str>) -> Option<&str> {
        let mut full = reference_names(reference).map(|name| match tag {
            Some(tag) => format!("{name}:{tag}"),
            None => name,
        });
        full.find_map(|full| self.lost.get(&full))
            .map(String::as_str)
    }

    /// The locked tags of the repository `name`, for messages, where the rest of the reference
    /// cannot be read. `None` where the lock has nothing of it, or where `name` is as likely a word
    /// as a repository.
    pub fn tags(&self, name: &str, role: Role) -> Option<String> {
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
            .map(Repository::listed)
            .next()
    }

    /// The full name of the repository whose path is `path` on any host, if there is one.
    pub fn by_path(&self, path: &str) -> Option<&str> {
        let reference: ImageRef = format!("h.invalid/{path}").parse().ok()?;
        self.basenames.has(path).then_some(())?;
        let fits = |repository: &&Repository| {
            let rest = repository.name.strip_suffix(&reference.repository);
            rest.is_some_and(|host| host.ends_with('/') && host.find('/') == Some(host.len() - 1))
        };
        self.repositories
            .values()
            .find(fits)
            .map(|repository| repository.name.as_str())
    }
}
