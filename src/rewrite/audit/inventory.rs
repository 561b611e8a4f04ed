//! What a lock holds, asked by any name: as it is upstream, by an alias, or at its destination.

use super::super::{Known, other_hosts};
use super::Verdict;
use crate::lockfile::{Image, Lock};
use crate::model::{Digest, ImageRef};
use crate::model::{Mapping, Target};
use std::collections::{BTreeMap, BTreeSet};

/// How many locked names a message lists.
const LISTED: usize = 4;

/// What a lock holds, by every name that it goes by.
#[derive(Debug)]
pub struct Inventory<'a> {
    lock: &'a Lock,
    known: Known,
    /// Images by `registry/repository`, upstream.
    upstream: BTreeMap<String, Vec<&'a Image>>,
    /// Images by `registry/repository` of their destinations.
    there: BTreeMap<String, Vec<&'a Image>>,
    /// `registry[/prefix]` of the destinations, with a slash at the end.
    target: Option<String>,
    /// Base URL of the site's file server.
    files: Option<String>,
    /// Names that the lock could not resolve or gave up, and why; `true` where that is accepted today.
    lost: BTreeMap<String, (String, bool)>,
    /// Hosts of registries that the lock has something from.
    hosts: BTreeSet<&'a str>,
}

impl<'a> Inventory<'a> {
    /// What `lock` holds on the day `today` (`YYYY-MM-DD`), with the destinations of `mapping` and the
    /// base URL of the site's file server.
    pub fn new(lock: &'a Lock, mapping: Option<&Mapping>, files: Option<&str>, today: &str) -> Inventory<'a> {
        // where there is no site, nothing goes by the name of a destination
        let nowhere = || Mapping::to(Target { registry: "site.invalid".into(), prefix: String::new() });
        let known = Known::new(lock, &mapping.cloned().unwrap_or_else(nowhere));
        let mut inventory = Inventory {
            lock,
            known: files.map_or(known.clone(), |files| known.with_files(files)),
            upstream: BTreeMap::new(),
            there: BTreeMap::new(),
            target: mapping.map(|mapping| format!("{}/", mapping.target())),
            files: files.map(|url| format!("{}/", url.trim_end_matches('/'))),
            lost: BTreeMap::new(),
            hosts: lock.images.iter().map(|image| image.name.registry.as_str()).collect(),
        };
        for image in &lock.images {
            inventory.upstream.entry(image.name.name()).or_default().push(image);
            for place in mapping.iter().flat_map(|mapping| mapping.image(&image.name)) {
                inventory.there.entry(place.to_string()).or_default().push(image);
            }
        }
        let normal = |name: &str| name.parse::<ImageRef>().ok().map(|name| name.to_string());
        let unresolved = lock
            .unresolved
            .iter()
            .map(|item| (&item.name, format!("the lock could not resolve it: {}", item.cause), false));
        let accepted = lock.missing.iter().map(|item| {
            let why = format!("it is a loss accepted until {}: {}", item.until, item.reason);
            (&item.name, why, today <= item.until.as_str())
        });
        let lost = unresolved.chain(accepted);
        inventory.lost = lost.filter_map(|(name, why, ok)| Some((normal(name)?, (why, ok)))).collect();
        inventory
    }

    /// The same for scans and rewriting.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The lock.
    pub(super) fn lock(&self) -> &'a Lock {
        self.lock
    }

    /// Whether `host` is a registry beyond doubt: the lock or the site has something there, or it is
    /// widely known.
    pub(super) fn is_registry(&self, host: &str) -> bool {
        let target = self.target.as_deref().and_then(|target| target.split('/').next());
        self.hosts.contains(host) || target == Some(host) || is_well_known(host)
    }

    /// Whether it is held. Without tag and digest it means `latest` in a container, and elsewhere a
    /// repository whose tag is set in another place.
    pub(in crate::rewrite) fn decide(&self, reference: &ImageRef, in_container: bool) -> Verdict {
        let name = reference.name();
        let aliases = other_hosts(&reference.registry).map(|host| format!("{host}/{}", reference.repository));
        let names: Vec<String> = std::iter::once(name.clone()).chain(aliases).collect();
        let upstream = names.iter().filter_map(|name| self.upstream.get(name)).flatten();
        let images: Vec<&Image> =
            upstream.chain(self.there.get(&name).into_iter().flatten()).copied().collect();
        let tag = if in_container { reference.tag_or_latest() } else { reference.tag.as_deref() };
        let hit = images.iter().find(|image| match (&reference.digest, tag) {
            (Some(digest), _) => has_digest(image, digest),
            (None, Some(tag)) => image.destination_tag() == tag,
            (None, None) => true,
        });
        if let Some(image) = hit {
            return Verdict::Held { item: image.name.to_string() };
        }
        let full = names.iter().map(|name| match (&reference.digest, tag) {
            (_, Some(tag)) => format!("{name}:{tag}"),
            (Some(digest), None) => format!("{name}@{digest}"),
            (None, None) => name.clone(),
        });
        if let Some((why, accepted)) = full.filter_map(|full| self.lost.get(&full)).next() {
            return match accepted {
                true => Verdict::Undecided { why: why.clone() },
                false => Verdict::Missing { name: Some(reference.clone()), url: None, why: why.clone() },
            };
        }
        let (name, why) = (self.source_of(reference, &images), self.why(reference, &images, tag));
        Verdict::Missing { name, url: None, why }
    }

    /// What would have to be carried for a name that is not held: the name itself, or the source of
    /// what is at this destination, where there is one such.
    fn source_of(&self, reference: &ImageRef, images: &[&Image]) -> Option<ImageRef> {
        if !self.is_there(reference) {
            return Some(reference.clone());
        }
        let sources: BTreeSet<String> = images.iter().map(|image| image.name.name()).collect();
        let [source] = &sources.into_iter().collect::<Vec<_>>()[..] else { return None };
        let source: ImageRef = source.parse().ok()?;
        Some(ImageRef { tag: reference.tag.clone(), digest: reference.digest.clone(), ..source })
    }

    /// Whether it stands under the site's destination.
    fn is_there(&self, reference: &ImageRef) -> bool {
        self.target.as_ref().is_some_and(|target| reference.name().starts_with(target))
            && !self.upstream.contains_key(&reference.name())
    }

    fn why(&self, reference: &ImageRef, images: &[&Image], tag: Option<&str>) -> String {
        let locked = listed(images);
        match (&reference.digest, images.is_empty()) {
            (_, true) if self.is_there(reference) => "nothing locked goes to this name".into(),
            (_, true) => "not in the lock".into(),
            (Some(digest), false) => match images.iter().find(|image| image.name.tag.as_deref() == tag) {
                Some(image) if tag.is_some() => format!(
                    "it is {}:{}…, and the lock has {tag} as {}:{}…",
                    digest.algorithm().as_str(),
                    digest.short(12),
                    image.digest.algorithm().as_str(),
                    image.digest.short(12),
                    tag = tag.unwrap_or_default(),
                ),
                _ => format!("the lock has this repository with other digests ({locked})"),
            },
            (None, false) if reference.tag.is_none() => {
                format!("without a tag it means latest; the lock has {locked}")
            }
            (None, false) => format!("the lock has this repository only as {locked}"),
        }
    }

    /// The upstream URL, with any scheme, of a URL at the site's file server: `<base>/<host>/<path>`.
    pub(super) fn file_at_site(&self, url: &str) -> Option<String> {
        Some(format!("https://{}", url.strip_prefix(self.files.as_deref()?)?))
    }

    /// The locked image whose configuration this is: what some container runtimes tell instead of the
    /// digest of a manifest.
    pub(super) fn with_config(&self, config: &Digest) -> Option<&'a Image> {
        self.lock.images.iter().find(|image| image.blobs.iter().any(|blob| blob.digest == *config))
    }
}

fn has_digest(image: &Image, digest: &Digest) -> bool {
    let trimmed = image.trimmed.as_ref().map(|trimmed| &trimmed.digest);
    image.manifests_in_order().any(|manifest| manifest.digest == *digest) || trimmed == Some(digest)
}

/// The locked names without the repository, for messages.
fn listed(images: &[&Image]) -> String {
    let short = |image: &&Image| match &image.name.tag {
        Some(tag) => tag.clone(),
        None => format!("@{}:{}…", image.digest.algorithm().as_str(), image.digest.short(12)),
    };
    let mut listed: Vec<String> = images.iter().take(LISTED).map(short).collect();
    if images.len() > LISTED {
        listed.push(format!("{} more", images.len() - LISTED));
    }
    listed.join(", ")
}

/// Public registries, and hosts that are called one.
fn is_well_known(host: &str) -> bool {
    const HOSTS: [&str; 11] = [
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "k8s.gcr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "public.ecr.aws",
        "quay.io",
        "registry.access.redhat.com",
        "registry.gitlab.com",
        "registry.redhat.io",
    ];
    const ENDINGS: [&str; 4] = [".gcr.io", ".pkg.dev", ".azurecr.io", ".amazonaws.com"];
    let name = host.split(':').next().unwrap_or(host);
    HOSTS.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || ["registry.", "docker."].iter().any(|beginning| name.starts_with(beginning))
}
