//! Which locked item a written reference means, and where that item goes.

use super::{Destination, Mapping};
use crate::lock::{Image, Lock};
use crate::model::{Digest, ImageRef, names_host};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Hosts under which the same repositories are found.
const ALIASES: [(&str, &str); 2] = [("k8s.gcr.io", "registry.k8s.io"), ("registry.k8s.io", "k8s.gcr.io")];

/// How many locked names a message lists.
const LISTED: usize = 4;

/// The references that a lock knows, each with the destination that a mapping gives it.
#[derive(Debug, Clone)]
pub struct Known {
    /// By `registry/repository`.
    repositories: BTreeMap<String, Repository>,
    /// `registry/repository` of every destination.
    destinations: BTreeSet<String>,
    /// Names that the lock has without a digest, and why.
    lost: BTreeMap<String, String>,
    /// Last path components of all names above: most scalars of a document are told apart by them.
    basenames: HashSet<String>,
}

/// One repository with locked images.
#[derive(Debug, Clone)]
struct Repository {
    name: String,
    /// The destination that is written; `None` where the site gives an empty list.
    destination: Option<Destination>,
    images: Vec<Locked>,
}

#[derive(Debug, Clone)]
struct Locked {
    name: ImageRef,
    /// Index, trimmed index and children.
    digests: BTreeSet<Digest>,
}

/// Where a reference stands; it decides what a missing tag means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The `image` of a container: no tag means `latest`.
    Container,
    /// Another key that is named after an image.
    Image,
    /// The repository part of a split reference; where it has no tag, the tag is set elsewhere.
    Repository,
    /// Anywhere else.
    Other,
}

/// What the lock says to a written reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// The lock has nothing to do with it.
    Unknown,
    /// It names a destination already.
    Settled,
    /// The lock has to do with it, but it must not be changed; why.
    Left(String),
    /// It means this item, which goes there.
    Known {
        /// The item's name, or its repository where the reference has no tag.
        item: String,
        /// The repository to write.
        to: &'a Destination,
    },
}

impl Known {
    /// What `lock` knows, with the destinations of `mapping`.
    pub fn new(lock: &Lock, mapping: &Mapping) -> Known {
        let mut repositories: BTreeMap<String, Repository> = BTreeMap::new();
        let mut destinations = BTreeSet::new();
        for image in &lock.images {
            let places = mapping.image(&image.name);
            destinations.extend(places.iter().map(Destination::to_string));
            let name = image.name.name();
            let entry = repositories.entry(name.clone());
            let entry = entry.or_insert_with(|| Repository {
                name,
                destination: places.into_iter().next(),
                images: Vec::new(),
            });
            entry.images.push(Locked { name: image.name.clone(), digests: digests(image) });
        }
        let unresolved = lock.unresolved.iter();
        let unresolved =
            unresolved.map(|item| (&item.name, format!("the lock could not resolve it: {}", item.cause)));
        let missing = lock.missing.iter();
        let missing = missing.map(|item| (&item.name, format!("it is an accepted loss: {}", item.reason)));
        let lost: BTreeMap<String, String> = unresolved
            .chain(missing)
            .filter_map(|(name, why)| Some((name.parse::<ImageRef>().ok()?.to_string(), why)))
            .collect();
        let names = repositories.keys().chain(&destinations).chain(lost.keys());
        let basenames = names.map(|name| basename(name).to_owned()).collect();
        Known { repositories, destinations, lost, basenames }
    }

    /// What the reference written as `text` means at `position`.
    pub(super) fn lookup(&self, text: &str, position: Position) -> Verdict<'_> {
        if !self.basenames.contains(basename(text)) {
            return Verdict::Unknown;
        }
        let Ok(reference) = text.parse::<ImageRef>() else { return Verdict::Unknown };
        let (name, with_host) = (reference.name(), names_host(text));
        let means_latest = !reference.is_pinned()
            && (position == Position::Container || (position == Position::Image && !with_host));
        let tag = if means_latest { Some("latest") } else { reference.tag.as_deref() };
        let candidates: Vec<&Repository> = std::iter::once(name.clone())
            .chain(aliases(&reference))
            .filter_map(|name| self.repositories.get(&name))
            .collect();
        let find = |hit: &dyn Fn(&Locked) -> bool| {
            candidates.iter().find_map(|repository| {
                let image = repository.images.iter().find(|image| hit(image))?;
                Some((*repository, image.name.to_string()))
            })
        };
        let found = match (&reference.digest, tag) {
            (Some(digest), _) => find(&|image| image.digests.contains(digest)),
            (None, Some(tag)) => find(&|image| image.name.tag.as_deref() == Some(tag)),
            (None, None) if with_host => candidates.first().map(|r| (*r, r.name.clone())),
            (None, None) => None,
        };
        let at_destination = self.destinations.contains(&name);
        if let Some((repository, item)) = found {
            return match &repository.destination {
                None => Verdict::Left("the site's registry.paths give it no destination".into()),
                Some(to) if to.to_string() == name => Verdict::Settled,
                // changing it would change it again at the next run
                Some(_) if at_destination => Verdict::Left("another locked item goes to this name".into()),
                Some(to) => Verdict::Known { item, to },
            };
        }
        if at_destination {
            return Verdict::Settled;
        }
        let full = std::iter::once(name).chain(aliases(&reference)).map(|name| match tag {
            Some(tag) => format!("{name}:{tag}"),
            None => name,
        });
        if let Some(why) = full.filter_map(|full| self.lost.get(&full)).next() {
            return Verdict::Left(why.clone());
        }
        // `redis:6379` and `nginx` are words as often as images
        let sure = with_host || reference.digest.is_some() || position != Position::Other;
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
}

impl Repository {
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

/// The last path component of a reference, without tag and digest.
fn basename(text: &str) -> &str {
    let name = text.split('@').next().unwrap_or(text);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::sha256(text.as_bytes())
    }

    /// What is made of `text`: the new repository, or why not.
    fn say(known: &Known, text: &str, position: Position) -> String {
        match known.lookup(text, position) {
            Verdict::Unknown => "unknown".into(),
            Verdict::Settled => "settled".into(),
            Verdict::Left(why) => format!("left: {why}"),
            Verdict::Known { item, to } => format!("{item} at {to}"),
        }
    }

    fn known(names: &[&str], to: &str, rest: &str) -> Known {
        let images = names.iter().map(|name| {
            let (top, child, trimmed) = (digest(name), digest(&format!("child {name}")), digest("trimmed"));
            format!(
                "- name: {name}\n  digest: {top}\n  mediaType: application/vnd.oci.image.index.v1+json\n  size: 1\n  \
                 manifests: [{{digest: {child}, size: 1, mediaType: m}}]\n  trimmed: {{digest: {trimmed}, size: 1}}\n"
            )
        });
        let text = format!("version: 1\nimages:\n{}{rest}", images.collect::<String>());
        Known::new(&Lock::parse("l", &text).unwrap(), &Mapping::new(to.parse().unwrap(), None))
    }

    #[test]
    fn a_tag_must_be_the_locked_one_and_a_digest_decides() {
        let name = "quay.io/a/b:1";
        let known = known(&[name], "r:5000", "");
        let at = |text: &str| say(&known, text, Position::Other);
        assert_eq!(at(name), "quay.io/a/b:1 at r:5000/a/b");
        assert_eq!(at("QUAY.io/a/b:1"), "quay.io/a/b:1 at r:5000/a/b");
        for digest in [digest(name), digest(&format!("child {name}")), digest("trimmed")] {
            assert_eq!(at(&format!("quay.io/a/b:2@{digest}")), "quay.io/a/b:1 at r:5000/a/b");
        }
        let other = format!("quay.io/a/b:1@{}", digest("other"));
        assert_eq!(at(&other), "left: the lock has this repository with other digests (1)");
        assert_eq!(at("quay.io/a/b:2"), "left: the lock has this repository only as 1");
        for text in
            ["quay.io/a/c:1", "other.io/a/b:1", "a/b:1", "b", "", "http://quay.io/a/b:1", "quay.io/a/b:"]
        {
            assert_eq!(at(text), "unknown", "{text}");
        }
    }

    #[test]
    fn where_it_stands_decides_what_a_missing_tag_means() {
        use Position::{Container, Image, Other, Repository};
        let known = known(&["quay.io/a/b:1", "nginx:latest", "redis:7"], "r:5000", "");
        let latest = "left: without a tag it means latest; the lock has 1";
        let nginx = "docker.io/library/nginx:latest at r:5000/library/nginx";
        let redis = "left: without a tag it means latest; the lock has 7";
        let short = "left: it names neither a host nor a tag";
        for (text, position, expected) in [
            ("quay.io/a/b", Other, "quay.io/a/b at r:5000/a/b"),
            ("quay.io/a/b", Image, "quay.io/a/b at r:5000/a/b"),
            ("quay.io/a/b", Repository, "quay.io/a/b at r:5000/a/b"),
            ("quay.io/a/b", Container, latest),
            ("nginx", Container, nginx),
            ("nginx", Image, nginx),
            ("nginx", Other, "unknown"),
            ("nginx", Repository, short),
            ("redis", Image, redis),
            ("redis", Other, "unknown"),
            ("redis:6379", Other, "unknown"),
            ("docker.io/redis:6379", Other, "left: the lock has this repository only as 7"),
            ("docker.io/library/redis:7", Other, "docker.io/library/redis:7 at r:5000/library/redis"),
            ("index.docker.io/redis:7", Other, "docker.io/library/redis:7 at r:5000/library/redis"),
        ] {
            assert_eq!(say(&known, text, position), expected, "{text} {position:?}");
        }
    }

    #[test]
    fn an_alias_goes_where_the_locked_name_goes() {
        let site = "apiVersion: landfall/v1\nkind: Site\nregistry: {address: r, paths: {k8s.gcr.io: old, registry.k8s.io: new}}";
        let site = crate::site::Site::parse(std::path::Path::new("s"), site).unwrap();
        let mapping = Mapping::new("r:5000".parse().unwrap(), Some(&site));
        let lock = |names: &[&str]| {
            let images = names.iter().map(|name| {
                format!("- {{name: '{name}', digest: {}, mediaType: m, size: 1}}\n", digest(name))
            });
            let text = format!("version: 1\nimages:\n{}", images.collect::<String>());
            Known::new(&Lock::parse("l", &text).unwrap(), &mapping)
        };
        let one = lock(&["registry.k8s.io/pause:3.9"]);
        assert_eq!(
            say(&one, "k8s.gcr.io/pause:3.9", Position::Other),
            "registry.k8s.io/pause:3.9 at r:5000/new/pause"
        );
        let both = lock(&["k8s.gcr.io/pause:3.1", "registry.k8s.io/pause:3.9"]);
        assert_eq!(
            say(&both, "k8s.gcr.io/pause:3.9", Position::Other),
            "registry.k8s.io/pause:3.9 at r:5000/new/pause"
        );
        assert_eq!(
            say(&both, "registry.k8s.io/pause:3.1", Position::Other),
            "k8s.gcr.io/pause:3.1 at r:5000/old/pause"
        );
        assert_eq!(say(&both, "k8s.gcr.io/pause", Position::Other), "k8s.gcr.io/pause at r:5000/old/pause");
    }

    #[test]
    fn a_name_at_a_destination_is_not_moved_again() {
        let known = known(&["quay.io/a/b:1", "r:5000/c/d:1", "r:5000/e:1", "r:5000/p/e:1"], "r:5000/p", "");
        let at = |text: &str| say(&known, text, Position::Other);
        assert_eq!(at("r:5000/p/a/b:1"), "settled");
        assert_eq!(at("r:5000/c/d:1"), "r:5000/c/d:1 at r:5000/p/c/d");
        assert_eq!(at("r:5000/p/c/d:1"), "settled");
        assert_eq!(at("r:5000/p/e:1"), "left: another locked item goes to this name");
    }

    #[test]
    fn what_the_lock_lost_is_told() {
        let rest = "missing: [{kind: image, name: 'quay.io/x/gone:1', reason: removed, until: 2027-01-31}]\n\
                    unresolved: [{kind: image, name: 'quay.io/x/y:1', cause: '404'}]\n";
        let known = known(&["quay.io/a/b:1"], "r:5000", rest);
        assert_eq!(say(&known, "quay.io/x/y:1", Position::Other), "left: the lock could not resolve it: 404");
        assert_eq!(say(&known, "quay.io/x/gone:1", Position::Other), "left: it is an accepted loss: removed");
        assert_eq!(say(&known, "quay.io/x/y:2", Position::Other), "unknown");
    }
}
