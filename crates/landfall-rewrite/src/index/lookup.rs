//! Looks up references, prefixes and URLs in the index.

use super::{ReferenceIndex, ReferencedItem};
use crate::occurrence::{ReferenceMeaning, ReferenceRole};
use landfall_model::{
    Destination, Digest, ImageRef, Wildcards, alias_hosts, has_host, redact_urls, reference_names,
};
use std::collections::{BTreeMap, BTreeSet};

// Looks up references to images and charts: by tag or digest, by an alias of the host, at a
// destination, or by path only.

// Looks up prefixes that several references share: `imageRepository: registry.k8s.io`,
// `global.imageRegistry`.

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
            .find_map(|repository| repository.find(tag, reference.digest.as_ref(), with_host))
        {
            Some(Err(why)) => return ReferenceLookup::Left(why),
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
            return match at_destination.find(tag, reference.digest.as_ref(), with_host) {
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

impl ReferenceReplacement {
    /// The new repository `to` without its end, which its user appends. An error is the reason why
    /// the reference is left.
    pub(crate) fn without_end<'t>(&self, to: &'t str, end: &str) -> Result<&'t str, String> {
        to.strip_suffix(end).ok_or_else(|| {
            let item = &self.item;
            format!("the destination of {item} is {to}, which does not end in {end}")
        })
    }
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

// Splits references into name and pin, and writes replacements.

/// The reference `text` with `replacement` applied. A tag, and a digest unless it is replaced, are
/// kept as written.
pub(crate) fn replaced(text: &str, replacement: &ReferenceReplacement) -> String {
    let pin = pin(text);
    let name = match &replacement.to {
        Some(to) => to.to_string(),
        None => text[..text.len() - pin.len()].to_owned(),
    };
    let Some(digest) = &replacement.digest else {
        return format!("{name}{pin}");
    };
    let tag = &pin[..pin.find('@').unwrap_or(pin.len())];
    format!("{name}{tag}@{digest}")
}

/// The part of a reference after its repository: `:tag`, `@digest`, both or nothing.
pub(crate) fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..]
        .find([':', '@'])
        .map_or(text.len(), |at| last + at);
    &text[at..]
}

/// Whether `text` certainly begins with a host. In the grammar of references, an organization of
/// GitHub with a capital letter is a host, too: `NVIDIA/gpu-operator`.
pub(crate) fn has_certain_host(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    has_host(text) && (first.contains(['.', ':']) || first.eq_ignore_ascii_case("localhost"))
}

/// Whether a text is a reference with a tag or digest.
pub(crate) fn is_pinned(text: &str) -> bool {
    text.parse::<ImageRef>()
        .is_ok_and(|reference| reference.is_pinned())
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
        let digests = image.item.digests().into_iter().cloned().collect();
        IndexedImage {
            name: image.name.clone(),
            digest: image.item.digest().clone(),
            digests,
            to,
        }
    }
}

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
    /// digest, selects the first image if all images have the same destination. An error is the
    /// reason why such a reference does not select one.
    pub(super) fn find(
        &self,
        tag: Option<&str>,
        digest: Option<&Digest>,
        with_host: bool,
    ) -> Option<Result<(String, &IndexedImage), String>> {
        let image = match (digest, tag) {
            (Some(digest), _) => self
                .images
                .iter()
                .find(|image| image.digests.contains(digest))?,
            (None, Some(tag)) => self
                .images
                .iter()
                .find(|image| image.name.tag.as_deref() == Some(tag))?,
            (None, None) if with_host => {
                let first = self.images.first()?;
                if self
                    .images
                    .iter()
                    .any(|image| image.to.first() != first.to.first())
                {
                    let why = format!("its tags ({}) have different destinations", self.listed());
                    return Some(Err(why));
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

impl ReferenceIndex {
    /// Looks up `text` as the prefix of the locked repositories below it. If `only` is not empty,
    /// repositories whose remaining path is not in `only` are ignored. The prefix is known if all
    /// repositories that are not ignored keep their remaining path below one common destination.
    pub fn lookup_prefix(&self, text: &str, only: &[&str]) -> ReferenceLookup {
        let Some(prefix) = canonical(text) else {
            return ReferenceLookup::Unknown;
        };
        let (host, path) = prefix
            .split_once('/')
            .map_or((&*prefix, ""), |(host, path)| (host, path));
        // `k8s.gcr.io` and `registry.k8s.io` are prefixes of the same images
        let aliases =
            alias_hosts(host).map(|host| format!("{host}/{path}").trim_end_matches('/').to_owned());
        let prefixes: Vec<String> = std::iter::once(prefix.clone()).chain(aliases).collect();
        let mut bases: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (rest, repository) in prefixes
            .iter()
            .flat_map(|prefix| below(&self.repositories, prefix))
        {
            if !only.is_empty() && !only.contains(&rest) {
                continue;
            }
            for image in &repository.images {
                let to = image
                    .to
                    .first()
                    .map(Destination::to_string)
                    .unwrap_or_default();
                let base = to
                    .strip_suffix(rest)
                    .and_then(|base| base.strip_suffix('/'));
                bases
                    .entry(base.unwrap_or_default().to_owned())
                    .or_default()
                    .insert(&repository.name);
            }
        }
        let mut found = bases.iter();
        match (found.next(), found.next()) {
            (Some((base, _)), None) if *base == prefix => ReferenceLookup::Settled(None),
            (Some((base, _)), None) if !base.is_empty() => {
                ReferenceLookup::resolved(prefix, Some(destination(base)), None)
            }
            (Some(_), second) => {
                let why = match second {
                    Some(_) => "have different destinations",
                    None => "do not keep their path at their destination",
                };
                let names: Vec<&str> = bases.values().flatten().copied().take(LISTED).collect();
                let names = names.join(", ");
                ReferenceLookup::Left(format!(
                    "the locked images below this prefix {why}: {names}"
                ))
            }
            (None, _) if below(&self.settled, &prefix).next().is_some() => {
                ReferenceLookup::Settled(None)
            }
            (None, _) => ReferenceLookup::Unknown,
        }
    }

    /// Whether locked images end in `name`, which has no host, and none of them is at Docker Hub.
    pub(crate) fn needs_prefix(&self, name: &str) -> bool {
        self.basenames.has(name)
            && !has_host(name)
            && name.parse::<ImageRef>().is_ok_and(|reference| {
                reference_names(&reference).all(|name| !self.repositories.contains_key(&name))
            })
    }

    /// Whether `to` is a destination of every image of the repository `name`. `None` if the lock
    /// does not contain the repository.
    pub fn is_delivered_to(&self, name: &str, to: &str) -> Option<bool> {
        let images = &self.repositories.get(name)?.images;
        Some(
            images
                .iter()
                .all(|image| image.to.iter().any(|one| one.to_string() == to)),
        )
    }
}

/// The repositories below `prefix`, each with its remaining path.
fn below<'k>(
    names: &'k RepositoryMap,
    prefix: &str,
) -> impl Iterator<Item = (&'k str, &'k IndexedRepository)> {
    let start = format!("{prefix}/");
    let from = names.range(start.clone()..).take_while({
        let start = start.clone();
        move |(name, _)| name.starts_with(&start)
    });
    from.map(move |(name, repository)| (&name[start.len()..], repository))
}

/// The canonical form of a prefix: `docker.io/istio` for `istio`, `quay.io` for `Quay.IO/`.
fn canonical(text: &str) -> Option<String> {
    let below: ImageRef = format!("{}/x/x", text.trim_end_matches('/')).parse().ok()?;
    below.name().strip_suffix("/x/x").map(str::to_owned)
}

/// Splits a prefix into registry and path, which may be empty.
pub(crate) fn destination(base: &str) -> Destination {
    let (registry, repository) = base.split_once('/').unwrap_or((base, ""));
    Destination {
        registry: registry.into(),
        repository: repository.into(),
    }
}

// Looks up URLs with and without placeholders.

/// A URL that may have placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern<'t> {
    /// The part before the first placeholder.
    pub head: &'t str,
    /// The literal parts between placeholders, and after the last one.
    pub rest: Vec<&'t str>,
}

impl ReferenceIndex {
    /// Looks up the URL of a locked file or git repository, or a URL at the file server. The URL
    /// may have placeholders; then the item is its head, and only the head is replaced. A URL at
    /// the file server is settled, too, if it is not locked.
    pub fn lookup_url(&self, url: &UrlPattern<'_>) -> ReferenceMeaning {
        let urls = &self.urls;
        let is_whole = url.rest.is_empty();
        let Some((location, at_site)) = urls.parts(url.head, is_whole) else {
            return ReferenceMeaning::Unknown;
        };
        // a host with a placeholder may be any host
        if !is_whole && !location.contains('/') {
            return ReferenceMeaning::Unknown;
        }
        // the file server has every file of a mirrored host, whether the lock contains it or not
        if urls.is_mirrored(&location)
            && !at_site
            && !urls.reverse
            && let Some(to) = self.new_url(&location, false)
        {
            return ReferenceMeaning::Known {
                item: redact_urls(url.head),
                to,
                reaches: Vec::new(),
            };
        }
        let (item, reaches) = if is_whole {
            match urls.urls.get(&location) {
                // the paths of the file server do not contain the upstream scheme
                Some(locked) if at_site || same_scheme(locked, url.head) => {
                    (locked.clone(), Vec::new())
                }
                _ if at_site => return ReferenceMeaning::Settled(None),
                _ if is_folder(&location, &urls.folders) || urls.has_below(&location) => {
                    return ReferenceMeaning::Left(FOLDER.into());
                }
                _ => return ReferenceMeaning::Unknown,
            }
        } else {
            match self.matching_urls(url, &location, at_site) {
                Ok(reaches) if !reaches.is_empty() => (redact_urls(url.head), reaches),
                _ if at_site => return ReferenceMeaning::Settled(None),
                Ok(_) => return ReferenceMeaning::Unknown,
                Err(why) => return ReferenceMeaning::Left(why.into()),
            }
        };
        // the URL already has the form that a rewrite in this direction gives
        if at_site != urls.reverse {
            return ReferenceMeaning::Settled(Some(item));
        }
        match self.new_url(&location, at_site) {
            Some(to) => ReferenceMeaning::Known { item, to, reaches },
            None => ReferenceMeaning::Left(
                "the site names no file server: add `files: http://…` to it, or use --files URL"
                    .into(),
            ),
        }
    }

    /// The reason to leave `url` if locked files are below it, at any depth.
    pub(crate) fn folder_of(&self, url: &str) -> Option<&'static str> {
        let (location, _) = self.urls.parts(url, true)?;
        self.urls.has_files_in(&location).then_some(FOLDER)
    }

    /// The locked URLs that the pattern `url` matches, or the reason why it matches none although
    /// locked URLs begin with its head. `None` if it does not concern locked URLs.
    pub(crate) fn reached_urls(
        &self,
        url: &UrlPattern<'_>,
    ) -> Option<Result<Vec<String>, &'static str>> {
        let (location, at_site) = self.urls.parts(url.head, url.rest.is_empty())?;
        // a host with a placeholder may be any host
        location.contains('/').then_some(())?;
        let reached = self.matching_urls(url, &location, at_site);
        (reached != Ok(Vec::new())).then_some(reached)
    }

    /// The locked URLs that the pattern `url` matches, or that are directly below a match.
    /// An error is the reason why a pattern that begins like locked URLs matches none.
    fn matching_urls(
        &self,
        url: &UrlPattern<'_>,
        location: &str,
        at_site: bool,
    ) -> Result<Vec<String>, &'static str> {
        let pattern = [&[location], url.rest.as_slice()]
            .concat()
            .join(PLACEHOLDER);
        let below = self.urls.urls.range(location.to_owned()..);
        let begin_alike = below
            .take_while(|(name, _)| name.starts_with(location))
            .filter(|(_, locked)| at_site || same_scheme(locked, url.head));
        let mut matching = Vec::new();
        let mut has_any = false;
        let mut has_deeper = false;
        for (name, locked) in begin_alike {
            has_any = true;
            match components_below(name, &pattern) {
                Some(0 | 1) => matching.push(locked.clone()),
                Some(_) => has_deeper = true,
                None => {}
            }
        }
        if matching.is_empty() && has_deeper {
            return Err(FOLDER);
        }
        if matching.is_empty() && has_any {
            return Err("the lock has URLs with this beginning, but none that this URL can match");
        }
        Ok(matching)
    }

    /// The new URL of `location`: its upstream URL if the written URL is at the file server
    /// (`at_site`), otherwise its URL at the file server. `None` if the site has no file server.
    fn new_url(&self, location: &str, at_site: bool) -> Option<String> {
        if !at_site {
            return self
                .urls
                .base
                .as_ref()
                .map(|base| format!("{base}/{location}"));
        }
        // `location` may be the head of a pattern: the next locked URL then begins with it
        let locked = self
            .urls
            .urls
            .range(location.to_owned()..)
            .next()
            .map(|(_, locked)| locked.as_str());
        let scheme = locked
            .and_then(|url| url.split_once("://"))
            .map_or("https", |(scheme, _)| scheme);
        Some(format!("{scheme}://{location}"))
    }

    /// Whether `url` is at the host of a locked URL, or at the file server.
    pub fn has_host(&self, url: &str) -> bool {
        self.urls.has_host(url)
    }
}

/// The reason to leave the URL of a folder unchanged: a program appends the file name.
const FOLDER: &str = "it is a folder of locked files, and the rest of the URL is added elsewhere";

/// Represents a placeholder in a pattern. No URL contains this byte.
const PLACEHOLDER: &str = "\0";

const PLACEHOLDERS: Wildcards = Wildcards {
    any: PLACEHOLDER.as_bytes()[0],
    one: None,
};

/// The number of path components that `name` has after those that match `pattern`. `None` if `name`
/// does not match. A placeholder matches within one component.
fn components_below(name: &str, pattern: &str) -> Option<usize> {
    let mut components = name.split('/');
    for pattern in pattern.trim_end_matches('/').split('/') {
        PLACEHOLDERS
            .matches(pattern, components.next()?)
            .then_some(())?;
    }
    Some(components.count())
}

/// Whether locked files are in the folder `location`.
fn is_folder(location: &str, folders: &BTreeSet<String>) -> bool {
    location.contains('/') && folders.contains(location.trim_end_matches('/'))
}

fn same_scheme(one: &str, other: &str) -> bool {
    let scheme = |url: &str| url.split("://").next().map(str::to_ascii_lowercase);
    scheme(one) == scheme(other)
}
