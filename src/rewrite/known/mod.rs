//! Which locked item a written reference means, and what is written for it.

mod names;
mod prefix;
#[cfg(test)]
mod tests;
mod urls;

pub(super) use urls::Heads;

use crate::lockfile::{Image, Lock};
use crate::model::{Destination, Mapping};
use crate::model::{Digest, ImageRef, names_host};
use aho_corasick::AhoCorasick;
use names::{Basenames, basename};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use urls::Urls;

/// Hosts under which the same repositories are found.
const ALIASES: [(&str, &str); 2] = [("k8s.gcr.io", "registry.k8s.io"), ("registry.k8s.io", "k8s.gcr.io")];

/// How many locked names a message lists.
const LISTED: usize = 4;

/// What stands in a text that may hide references which its own bytes do not show: encoded content,
/// and escapes.
const HIDING: [&str; 11] = [
    "b64",
    "base64",
    "secret",
    "binarydata",
    "!!binary",
    ":binary>",
    "encoding",
    "userdata",
    "user_data",
    "customdata",
    "\\u",
];

/// The references that a lock knows, each with what is written for it: the destination that a mapping
/// gives it or, in reverse, the locked name for a destination.
#[derive(Debug, Clone)]
pub struct Known {
    /// What is rewritten, by `registry/repository` as texts have it.
    repositories: BTreeMap<String, Repository>,
    /// The names at the other end: what stands there is right already.
    settled: BTreeMap<String, Repository>,
    /// Names that the lock has without a digest, and why.
    lost: BTreeMap<String, String>,
    /// Last path components of all names above: most scalars of a document are told apart by them.
    basenames: Basenames,
    /// Old digest -> new digest, where a trimmed index was delivered.
    replaced: BTreeMap<Digest, Digest>,
    urls: Urls,
    /// Finds words without which a text has no known reference.
    words: Option<AhoCorasick>,
}

/// One repository with locked images.
#[derive(Debug, Clone)]
struct Repository {
    name: String,
    images: Vec<Locked>,
}

#[derive(Debug, Clone)]
struct Locked {
    name: ImageRef,
    digest: Digest,
    /// Index, trimmed index and children.
    digests: BTreeSet<Digest>,
    /// What is written, first the one that is; none where the site gives an empty list.
    to: Vec<Destination>,
}

/// Where a reference stands; it decides what a missing tag means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// The `image` of a container or of an image volume: no tag means `latest`.
    Container,
    /// Another key that is named after an image.
    Image,
    /// A reference in parts; where it has no tag, the tag is set elsewhere.
    Repository,
    /// The beginning that several references have in common, such as `global.imageRegistry`.
    Prefix,
    /// Any other value of a document.
    Value,
    /// A word of a text: an argument, a script, a template.
    Text,
    /// A URL.
    Url,
}

impl Position {
    /// Whether what stands there is an image whatever it looks like.
    pub fn is_image(self) -> bool {
        matches!(self, Position::Container | Position::Image | Position::Repository)
    }
}

/// What the lock says to a written reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The lock has nothing to do with it.
    Unknown,
    /// It stands as it should; the item that it means, where that is sure.
    Settled(Option<String>),
    /// The lock has to do with it, but it must not be changed; why.
    Left(String),
    /// It means a locked item and is to be written otherwise.
    Known(Meant),
}

/// What a reference means, and what is written for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meant {
    /// The item's name, or its repository where the reference has no tag.
    pub(super) item: String,
    /// The repository to write; `None` where it stays.
    pub(super) to: Option<Destination>,
    /// The digest to write; `None` where what was written stays.
    pub(super) digest: Option<Digest>,
}

impl Known {
    /// What `lock` knows, with the destinations of `mapping`.
    pub fn new(lock: &Lock, mapping: &Mapping) -> Known {
        let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
        for image in &lock.images {
            let to = mapping.image(&image.name);
            for place in &to {
                add(&mut there, place.to_string(), locked(image, vec![]));
            }
            add(&mut here, image.name.name(), locked(image, to));
        }
        Known::of(lock, here, there, Urls::new(lock))
    }

    /// The way back: what stands at the destinations of `mapping` becomes what `lock` names it.
    pub fn reverse(lock: &Lock, mapping: &Mapping) -> Known {
        let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
        for image in &lock.images {
            let ImageRef { registry, repository, .. } = image.name.clone();
            for place in mapping.image(&image.name) {
                let source = Destination { registry: registry.clone(), repository: repository.clone() };
                add(&mut here, place.to_string(), locked(image, vec![source]));
            }
            add(&mut there, image.name.name(), locked(image, vec![]));
        }
        Known::of(lock, here, there, Urls::reverse(lock))
    }

    fn of(
        lock: &Lock,
        repositories: BTreeMap<String, Repository>,
        settled: BTreeMap<String, Repository>,
        urls: Urls,
    ) -> Known {
        let unresolved = lock.unresolved.iter();
        let unresolved =
            unresolved.map(|item| (&item.name, format!("the lock could not resolve it: {}", item.cause)));
        let missing = lock.missing.iter();
        let missing = missing.map(|item| (&item.name, format!("it is an accepted loss: {}", item.reason)));
        let lost: BTreeMap<String, String> = unresolved
            .chain(missing)
            .filter_map(|(name, why)| Some((name.parse::<ImageRef>().ok()?.to_string(), why)))
            .collect();
        let names = repositories.keys().chain(settled.keys()).chain(lost.keys());
        let basenames = Basenames::new(names);
        let mut known =
            Known { repositories, settled, lost, basenames, replaced: BTreeMap::new(), urls, words: None };
        known.words = known.automaton();
        known
    }

    /// With the file server that URLs of locked files are rewritten to: any URL that answers
    /// `/<host>/<path>`.
    #[must_use]
    pub fn with_files(mut self, base: &str) -> Known {
        self.urls.set_base(base);
        self.words = self.automaton();
        self
    }

    /// With digests that a push replaced: that of a whole index -> that of the trimmed one.
    #[must_use]
    pub fn with_replaced(mut self, replaced: impl IntoIterator<Item = (Digest, Digest)>) -> Known {
        self.replaced = replaced.into_iter().collect();
        self
    }

    /// The automaton of the words one of which every known reference has in it, however it is taken apart.
    fn automaton(&self) -> Option<AhoCorasick> {
        let names = self.repositories.keys().chain(self.settled.keys()).chain(self.lost.keys());
        let words: BTreeSet<&str> = names
            .flat_map(|name| {
                // a registry may stand by itself
                let host = name.split('/').next().unwrap_or(name);
                let parts = [basename(name), first(name), host];
                parts
                    .into_iter()
                    .chain(first(name).split(':').take(1))
                    .chain(other_hosts(host).map(|host| -> &str { host }))
            })
            .chain(self.urls.words())
            .chain(HIDING)
            .collect();
        AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
    }

    /// Whether `text` may have a known reference in it. What says no, is not read any further.
    pub(super) fn may_stand_in(&self, text: &str) -> bool {
        self.words.as_ref().is_none_or(|words| words.is_match(text))
    }

    /// What the reference written as `text` means at `position`, and with `pin` that it shall have its
    /// digest.
    pub(super) fn lookup(&self, text: &str, position: Position, pin: bool) -> Verdict {
        if !self.basenames.has(text) {
            return Verdict::Unknown;
        }
        let Ok(reference) = text.parse::<ImageRef>() else { return Verdict::Unknown };
        let with_host = names_host(text);
        let means_latest = !reference.is_pinned()
            && (position == Position::Container || (position == Position::Image && !with_host));
        let asked = Asked {
            tag: if means_latest { Some("latest") } else { reference.tag.as_deref() },
            digest: reference.digest.as_ref(),
            with_host,
        };
        let name = reference.name();
        let candidates: Vec<&Repository> = std::iter::once(name.clone())
            .chain(aliases(&reference))
            .filter_map(|name| self.repositories.get(&name))
            .collect();
        let there = self.settled.get(&name);
        let change = |image: &Locked| {
            let pinned = reference.tag.is_some() || means_latest;
            match &reference.digest {
                Some(digest) => self.replaced.get(digest).cloned(),
                None => {
                    (pin && pinned).then(|| self.replaced.get(&image.digest).unwrap_or(&image.digest).clone())
                }
            }
        };
        match candidates.iter().find_map(|repository| repository.find(&asked)) {
            Some(Err(why)) => return Verdict::Left(why),
            Some(Ok((item, image))) => {
                return match image.to.first() {
                    None => Verdict::Left("the site's registry.paths give it no destination".into()),
                    Some(to) if to.to_string() == name => Verdict::of(item, None, change(image)),
                    // changing it would change it again at the next run
                    Some(_) if there.is_some() => {
                        Verdict::Left("another locked item goes to this name".into())
                    }
                    Some(to) => Verdict::of(item, Some(to.clone()), change(image)),
                };
            }
            None => {}
        }
        if let Some(there) = there {
            return match there.find(&asked) {
                Some(Ok((item, image))) => Verdict::of(item, None, change(image)),
                _ => Verdict::Settled(None),
            };
        }
        let tag = asked.tag;
        let full = std::iter::once(name).chain(aliases(&reference)).map(|name| match tag {
            Some(tag) => format!("{name}:{tag}"),
            None => name,
        });
        if let Some(why) = full.filter_map(|full| self.lost.get(&full)).next() {
            return Verdict::Left(why.clone());
        }
        // `redis:6379` and `nginx` are words as often as images
        let sure = with_host || reference.digest.is_some() || position.is_image();
        let Some(repository) = candidates.first().filter(|_| sure) else { return Verdict::Unknown };
        let locked = repository.listed();
        Verdict::Left(match (&reference.digest, tag) {
            (Some(_), _) => format!("the lock has this repository with other digests ({locked})"),
            (None, Some(_)) if means_latest => {
                format!("without a tag it means latest; the lock has {locked}")
            }
            (None, Some(_)) => format!("the lock has this repository only as {locked}"),
            (None, None) => "it names neither a host nor a tag".into(),
        })
    }

    /// What the lock has of the repository `name`, which the rest of a reference, that cannot be read,
    /// follows: the tags, for a message. `None` where the lock has nothing of it, or where `name` is a word
    /// as likely as a repository.
    pub(super) fn tags(&self, name: &str, position: Position) -> Option<String> {
        let reference = self.repository(name)?;
        if !names_host(name) && !position.is_image() {
            return None;
        }
        let names = std::iter::once(reference.name()).chain(aliases(&reference));
        names.filter_map(|name| self.repositories.get(&name)).map(Repository::listed).next()
    }

    /// The repository whose path is `path`, whatever its host is, if there is one: its full name.
    pub(super) fn by_path(&self, path: &str) -> Option<&str> {
        let reference: ImageRef = format!("h.invalid/{path}").parse().ok()?;
        self.basenames.has(path).then_some(())?;
        let fits = |repository: &&Repository| {
            let rest = repository.name.strip_suffix(&reference.repository);
            rest.is_some_and(|host| host.ends_with('/') && host.find('/') == Some(host.len() - 1))
        };
        self.repositories.values().find(fits).map(|repository| repository.name.as_str())
    }

    /// The reference `name`, where it has neither tag nor digest and its last component is a known one.
    fn repository(&self, name: &str) -> Option<ImageRef> {
        self.basenames.has(name).then_some(())?;
        name.parse::<ImageRef>().ok().filter(|reference| !reference.is_pinned())
    }
}

/// What a reference asks for within its repository.
struct Asked<'a> {
    tag: Option<&'a str>,
    digest: Option<&'a Digest>,
    with_host: bool,
}

impl Verdict {
    fn of(item: String, to: Option<Destination>, digest: Option<Digest>) -> Verdict {
        match (&to, &digest) {
            (None, None) => Verdict::Settled(Some(item)),
            _ => Verdict::Known(Meant { item, to, digest }),
        }
    }
}

impl Repository {
    /// The image that is asked for, with the name of the item; the first image of the repository where
    /// nothing but the repository is asked for. `Err` where that cannot be decided.
    fn find(&self, asked: &Asked<'_>) -> Option<Result<(String, &Locked), String>> {
        let image = match (asked.digest, asked.tag) {
            (Some(digest), _) => self.images.iter().find(|image| image.digests.contains(digest))?,
            (None, Some(tag)) => self.images.iter().find(|image| image.name.tag.as_deref() == Some(tag))?,
            (None, None) if asked.with_host => {
                let first = self.images.first()?;
                if self.images.iter().any(|image| image.to.first() != first.to.first()) {
                    return Some(Err(format!("its tags ({}) go to different places", self.listed())));
                }
                return Some(Ok((first.name.name(), first)));
            }
            (None, None) => return None,
        };
        Some(Ok((image.name.to_string(), image)))
    }

    /// The locked names without the repository, for messages.
    fn listed(&self) -> String {
        let short = |image: &Locked| match (&image.name.tag, &image.name.digest) {
            (Some(tag), _) => tag.clone(),
            (None, Some(digest)) => format!("@{}:{}…", digest.algorithm().as_str(), digest.short(12)),
            (None, None) => "latest".into(),
        };
        let mut listed: Vec<String> = self.images.iter().take(LISTED).map(short).collect();
        if self.images.len() > LISTED {
            listed.push(format!("{} more", self.images.len() - LISTED));
        }
        listed.join(", ")
    }
}

fn add(names: &mut BTreeMap<String, Repository>, name: String, image: Locked) {
    let entry = names.entry(name.clone()).or_insert_with(|| Repository { name, images: Vec::new() });
    entry.images.push(image);
}

fn locked(image: &Image, to: Vec<Destination>) -> Locked {
    Locked { name: image.name.clone(), digest: image.digest.clone(), digests: digests(image), to }
}

/// Every digest by which a reference can mean `image`.
fn digests(image: &Image) -> BTreeSet<Digest> {
    let top = image.manifests_in_order().map(|descriptor| descriptor.digest);
    top.chain(image.trimmed_descriptor().map(|descriptor| descriptor.digest)).collect()
}

/// Other names of the repository of `reference`.
fn aliases(reference: &ImageRef) -> impl Iterator<Item = String> {
    other_hosts(&reference.registry).map(|alias| format!("{alias}/{}", reference.repository))
}

/// Hosts under which the repositories of `host` are found too.
pub(crate) fn other_hosts(host: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(known, _)| *known == host).map(|(_, alias)| *alias)
}

/// The word by which a prefix of the reference `name` is known: its host, or what follows `docker.io`,
/// which is left out as a rule.
fn first(name: &str) -> &str {
    let name = name.strip_prefix("docker.io/").unwrap_or(name);
    name.split('/').next().unwrap_or(name)
}
