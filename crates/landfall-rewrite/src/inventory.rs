//! Finds the items of a lock by any of their names: the upstream name, an alias, or a destination.

use crate::index::{
    LockedName, LossCause, ReferenceIndex, ReferencedItem, listed, losses, names, reference_names,
};
use landfall_item::lockfile::Lock;
use landfall_item::{LockedGitRepository, LockedItem, LockedPackageSet};
use landfall_model::{
    DestinationMap, Digest, ImageRef, TargetRegistry, has_host, normal_web_url, without_scheme,
};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The items of a lock by all their names.
#[derive(Debug)]
pub struct Inventory<'a> {
    index: ReferenceIndex,
    images: Vec<ReferencedItem<'a>>,
    /// The images by their upstream `registry/repository`.
    upstream: BTreeMap<String, Vec<ReferencedItem<'a>>>,
    /// The images by the `registry/repository` of their destinations.
    at_destinations: BTreeMap<String, Vec<ReferencedItem<'a>>>,
    pub(crate) urls: LockedUrls<'a>,
    /// The `registry[/prefix]` of the destinations, with a trailing slash.
    target: Option<String>,
    /// The base URL of the site's file server, with a trailing slash.
    files: Option<String>,
    /// The names that the lock has without a digest, each with the reason and whether the manifest
    /// accepts today that the image is missing.
    lost: BTreeMap<String, (String, bool)>,
    /// The hosts of the locked images.
    hosts: BTreeSet<&'a str>,
    /// The git repositories of the lock.
    pub(crate) repositories: &'a [LockedGitRepository],
    /// The package sets of the lock, if packages that scripts install are looked up too.
    packages: Option<&'a [LockedPackageSet]>,
    /// Whether references are searched everywhere, or only where images and URLs are named.
    pub(crate) is_thorough: bool,
    helm_repositories: OnceLock<HelmRepositories>,
}

/// The URLs of Flux's `HelmRepository` objects by their names; `None` for a name with several URLs.
pub(crate) type HelmRepositories = BTreeMap<String, Option<String>>;

impl<'a> Inventory<'a> {
    /// The items of `lock` on the day `today` (`YYYY-MM-DD`), with their destinations by `mapping`
    /// and the base URL `files` of the site's file server.
    pub fn new(
        lock: &'a Lock,
        mapping: Option<&DestinationMap>,
        files: Option<&str>,
        today: &str,
    ) -> Inventory<'a> {
        // without a site, there are no destinations
        let nowhere = DestinationMap::to(TargetRegistry {
            registry: "site.invalid".into(),
            prefix: String::new(),
        });
        let index = ReferenceIndex::new(lock, mapping.unwrap_or(&nowhere));
        let lost = losses(lock).map(|(name, cause)| match cause {
            LossCause::Unresolved(cause) => (
                name,
                (format!("the lock could not resolve it: {cause}"), false),
            ),
            LossCause::Accepted { reason, until } => (
                name,
                (
                    format!("the manifest accepts until {until} that it is missing: {reason}"),
                    today <= until,
                ),
            ),
        });
        let mut inventory = Inventory {
            index: files.map_or(index.clone(), |files| index.with_files(files)),
            images: Vec::new(),
            upstream: BTreeMap::new(),
            at_destinations: BTreeMap::new(),
            urls: LockedUrls::default(),
            target: mapping.map(|mapping| format!("{}/", mapping.target())),
            files: files.map(|url| format!("{}/", url.trim_end_matches('/'))),
            lost: lost.collect(),
            hosts: BTreeSet::new(),
            repositories: &lock.git,
            packages: None,
            is_thorough: true,
            helm_repositories: OnceLock::new(),
        };
        let mut urls = Vec::new();
        for found in names(lock) {
            match found {
                LockedName::Reference(image) => inventory.add(image, mapping),
                LockedName::Url { url, item } => urls.push((url, item)),
            }
        }
        inventory.urls = LockedUrls::new(urls);
        inventory
    }

    /// Searches only where images and URLs are named, for an audit that runs with a rewrite: the
    /// rewrite reports words of texts and encoded texts itself.
    #[must_use]
    pub fn for_audit_with_rewrite(self) -> Inventory<'a> {
        Inventory {
            is_thorough: false,
            ..self
        }
    }

    /// Looks up the packages of `lock`, too.
    #[must_use]
    pub fn with_packages(self, lock: &'a Lock) -> Inventory<'a> {
        Inventory {
            packages: Some(&lock.packages),
            ..self
        }
    }

    /// Sets the repositories of charts that the audited files define, unless they are set.
    pub(crate) fn know_helm_repositories(&self, defined: impl FnOnce() -> HelmRepositories) {
        self.helm_repositories.get_or_init(defined);
    }

    /// The URL of the repository of charts `name` that one of the audited files defines.
    pub(crate) fn helm_repository(&self, name: &str) -> Option<&str> {
        self.helm_repositories.get()?.get(name)?.as_deref()
    }

    /// Whether the lock has neither images nor URLs nor git repositories.
    pub(crate) fn is_empty(&self) -> bool {
        self.images.is_empty() && self.urls.is_empty() && self.repositories.is_empty()
    }

    /// Whether packages are looked up.
    pub(crate) fn has_packages(&self) -> bool {
        self.packages.is_some()
    }

    /// The package sets of the lock.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &'a LockedPackageSet> {
        self.packages.iter().copied().flatten()
    }

    fn add(&mut self, image: ReferencedItem<'a>, mapping: Option<&DestinationMap>) {
        self.images.push(image);
        self.hosts.insert(&image.name.registry);
        self.upstream
            .entry(image.name.name())
            .or_default()
            .push(image);
        for destination in mapping
            .iter()
            .flat_map(|mapping| image.item.destinations(mapping))
        {
            self.at_destinations
                .entry(destination.to_string())
                .or_default()
                .push(image);
        }
    }

    /// The index of the same lock, for scans and rewrites.
    pub fn index(&self) -> &ReferenceIndex {
        &self.index
    }

    /// Whether `written` is a full name with a tag or digest, and its host is certainly a registry.
    pub(crate) fn is_full_name(&self, written: &str) -> bool {
        let full =
            |reference: ImageRef| reference.is_pinned() && self.is_registry(&reference.registry);
        has_host(written) && written.parse::<ImageRef>().is_ok_and(full)
    }

    /// Whether `host` is certainly a registry: the lock or the site uses it, or it is widely known.
    fn is_registry(&self, host: &str) -> bool {
        let target = self
            .target
            .as_deref()
            .and_then(|target| target.split('/').next());
        self.hosts.contains(host) || target == Some(host) || is_registry(host)
    }

    /// Whether the lock contains `reference`. Without tag and digest, `reference` means `latest` in
    /// a container, and elsewhere a repository whose tag is set by another value.
    pub(crate) fn decide(&self, reference: &ImageRef, in_container: bool) -> LockCoverage {
        let images = self.images_of(reference);
        // kubelet and Docker pull `latest` if a container names neither tag nor digest
        let tag = if in_container {
            reference.tag_or_latest()
        } else {
            reference.tag.as_deref()
        };
        // as in a pull, the tag is ignored if there is a digest
        let digest = reference.digest.as_ref();
        if let Some(image) = images.iter().find(|image| image.has_pin(digest, tag)) {
            return LockCoverage::Held {
                item: image.name.to_string(),
            };
        }
        let mut full = reference_names(reference).map(|name| match (&reference.digest, tag) {
            (_, Some(tag)) => format!("{name}:{tag}"),
            (Some(digest), None) => format!("{name}@{digest}"),
            (None, None) => name,
        });
        if let Some((why, accepted)) = full.find_map(|full| self.lost.get(&full)) {
            let why = why.clone();
            if *accepted {
                return LockCoverage::Undecided { why };
            }
            return LockCoverage::Missing {
                name: Some(reference.clone()),
                url: None,
                why,
            };
        }
        if let Some(why) = why_impossible(reference).filter(|_| images.is_empty()) {
            return LockCoverage::Undecided { why: why.into() };
        }
        LockCoverage::Missing {
            name: self.source_of(reference, &images),
            url: None,
            why: self.reason_missing(reference, &images, tag),
        }
    }

    /// The locked images of the repository of `reference`, which is an upstream name or a
    /// destination.
    fn images_of(&self, reference: &ImageRef) -> Vec<ReferencedItem<'a>> {
        let upstream = reference_names(reference).filter_map(|name| self.upstream.get(&name));
        let images = upstream.chain(self.at_destinations.get(&reference.name()));
        images.flatten().copied().collect()
    }

    /// Whether the lock contains the image `written`. If it has no tag and no digest, any locked
    /// tag matches.
    pub(crate) fn has_image(&self, written: &str) -> bool {
        let Ok(reference) = written.parse::<ImageRef>() else {
            return false;
        };
        matches!(self.decide(&reference, false), LockCoverage::Held { .. })
    }

    /// The locked tags of the repository `base`, which is an upstream name or a destination.
    pub(crate) fn tags(&self, base: &str) -> Vec<&'a str> {
        let Ok(reference) = base.parse::<ImageRef>() else {
            return Vec::new();
        };
        let images = self.images_of(&reference).into_iter();
        images
            .filter_map(|image| image.name.tag.as_deref())
            .collect()
    }

    /// The reference of the locked chart `chart` with the version `version`, in any repository.
    pub(crate) fn chart_named(&self, chart: &str, version: &str) -> Option<String> {
        // a tag cannot contain the `+` of a version
        let tag = version.replace('+', "_");
        let is_chart = |image: &&ReferencedItem<'_>| matches!(image.item, LockedItem::Chart(_));
        let found = self.images.iter().filter(is_chart).find(|image| {
            let name = image.name.repository.rsplit('/').next();
            name == Some(chart) && image.item.tag() == tag
        });
        found.map(|image| image.name.to_string())
    }

    /// The locked images whose names begin with `prefix` and a slash.
    pub fn images_below(&self, prefix: &str) -> Vec<String> {
        let start = format!("{prefix}/");
        let names = self.images.iter().map(|image| image.name.to_string());
        names.filter(|name| name.starts_with(&start)).collect()
    }

    /// The image to add for a missing `reference`: the reference itself or, for a destination, its
    /// upstream name. `None` if the destination has no upstream name or several.
    fn source_of(&self, reference: &ImageRef, images: &[ReferencedItem<'_>]) -> Option<ImageRef> {
        if !self.is_at_site(reference) {
            return Some(reference.clone());
        }
        let sources: BTreeSet<String> = images.iter().map(|image| image.name.name()).collect();
        let [source] = &sources.into_iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let source: ImageRef = source.parse().ok()?;
        Some(ImageRef {
            tag: reference.tag.clone(),
            digest: reference.digest.clone(),
            ..source
        })
    }

    /// Whether `reference` is below the site's registry and is not an upstream name.
    fn is_at_site(&self, reference: &ImageRef) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| reference.name().starts_with(target))
            && !self.upstream.contains_key(&reference.name())
    }

    /// The reason why `reference`, read with `tag`, is missing. `images` are the locked
    /// images of its repository.
    fn reason_missing(
        &self,
        reference: &ImageRef,
        images: &[ReferencedItem<'_>],
        tag: Option<&str>,
    ) -> String {
        let locked = listed(images.iter().map(|image| (image.name, image.item.digest())));
        match (&reference.digest, images.is_empty()) {
            (_, true) if self.is_at_site(reference) => {
                "no locked image has this destination".into()
            }
            (_, true) => "not in the lock".into(),
            (Some(digest), false) => {
                match images.iter().find(|image| image.name.tag.as_deref() == tag) {
                    Some(image) if tag.is_some() => format!(
                        "it is {}:{}…, and the lock has {tag} as {}:{}…",
                        digest.algorithm().as_str(),
                        digest.short(12),
                        image.item.digest().algorithm().as_str(),
                        image.item.digest().short(12),
                        tag = tag.unwrap_or_default(),
                    ),
                    _ => format!("the lock has this repository with other digests ({locked})"),
                }
            }
            (None, false) if reference.tag.is_none() => {
                format!("without a tag it means latest; the lock has {locked}")
            }
            (None, false) => format!("the lock has this repository only as {locked}"),
        }
    }

    /// The `REGISTRY[/PREFIX]` of `reference`, if `reference` names a locked image at the registry
    /// of another site. Documents that were rewritten for that site contain such references.
    pub fn other_target(&self, reference: &str) -> Option<String> {
        let reference = has_host(reference)
            .then(|| reference.parse::<ImageRef>().ok())
            .flatten()?;
        if self.is_registry(&reference.registry) {
            return None;
        }
        let prefixes = self.images.iter().filter_map(|image| {
            let prefix = reference.repository.strip_suffix(&*image.name.repository)?;
            let is_pinned_alike =
                image.has_pin(reference.digest.as_ref(), reference.tag.as_deref());
            let is_whole = prefix.is_empty() || prefix.ends_with('/');
            (is_whole && is_pinned_alike).then(|| prefix.trim_end_matches('/'))
        });
        // the longest locked name leaves the shortest prefix
        match prefixes.min_by_key(|prefix| prefix.len())? {
            "" => Some(reference.registry),
            prefix => Some(format!("{}/{prefix}", reference.registry)),
        }
    }

    /// The upstream URL of `<base>/<host>/<path>`, a URL at the site's file server. The scheme
    /// `https` is a guess.
    pub(crate) fn file_at_site(&self, url: &str) -> Option<String> {
        Some(format!(
            "https://{}",
            url.strip_prefix(self.files.as_deref()?)?
        ))
    }

    /// The name of the locked image with this config. Some container runtimes report the digest of
    /// the config instead of that of the manifest.
    pub(crate) fn with_config(&self, config: &Digest) -> Option<&'a ImageRef> {
        self.images
            .iter()
            .find(|image| image.item.has_blob(config))
            .map(|image| image.name)
    }
}

// The URLs of a lock, in which the URLs of documents are looked up. A lock with packages may have
// a million URLs.

/// The URLs of a lock, each with the name of its item.
#[derive(Debug, Default)]
pub(crate) struct LockedUrls<'a> {
    /// Sorted by URL.
    urls: Vec<(Cow<'a, str>, &'a str)>,
    /// The position of a URL by its host and path. Filled by the first look-up, because few audits
    /// need it.
    locations: OnceLock<BTreeMap<String, usize>>,
    /// The position of a URL by its [`shape`]. Filled by the first look-up.
    shapes: OnceLock<BTreeMap<String, usize>>,
    /// The position of a URL that is not in its normal form, by that form. Filled by the first
    /// look-up.
    normal_forms: OnceLock<BTreeMap<String, usize>>,
}

impl<'a> LockedUrls<'a> {
    pub(crate) fn new(mut urls: Vec<(Cow<'a, str>, &'a str)>) -> LockedUrls<'a> {
        urls.sort_by(|(one, _), (other, _)| one.cmp(other));
        LockedUrls {
            urls,
            ..LockedUrls::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// The item with this URL, or with one that has the same normal form.
    pub(crate) fn item(&self, url: &str) -> Option<&'a str> {
        self.exact_item(url).or_else(|| {
            let normal = normal_web_url(url)?;
            let at = || Some(self.urls[*self.normal_forms().get(&normal)?].1);
            self.exact_item(&normal).or_else(at)
        })
    }

    fn normal_forms(&self) -> &BTreeMap<String, usize> {
        self.normal_forms.get_or_init(|| {
            let urls = self.urls.iter().enumerate();
            let others = urls.filter(|(_, (url, _))| may_have_other_form(url));
            let normal = others.filter_map(|(at, (url, _))| Some((normal_web_url(url)?, at)));
            normal.collect()
        })
    }

    fn exact_item(&self, url: &str) -> Option<&'a str> {
        let at = self.urls.partition_point(|(known, _)| **known < *url);
        let (known, item) = self.urls.get(at)?;
        (known == url).then_some(*item)
    }

    /// The item with this URL, or with this URL and another scheme.
    pub(crate) fn item_at_location(&self, url: &str) -> Option<&'a str> {
        let locations = self
            .locations
            .get_or_init(|| self.positions(|url| without_scheme(url).to_owned()));
        Some(self.urls[*locations.get(without_scheme(url))?].1)
    }

    /// A locked URL that differs from `url` only in its numbers and its scheme.
    pub(crate) fn similar(&self, url: &str) -> Option<&str> {
        let shapes = self.shapes.get_or_init(|| self.positions(shape));
        Some(&self.urls[*shapes.get(&shape(url))?].0)
    }

    /// Maps each result of `form` to the position of the first URL that has it.
    fn positions(&self, form: fn(&str) -> String) -> BTreeMap<String, usize> {
        let mut positions = BTreeMap::new();
        for (at, (url, _)) in self.urls.iter().enumerate() {
            positions.entry(form(url)).or_insert(at);
        }
        positions
    }
}

/// Whether the normal form of a URL may differ from it. Of a million URLs of packages, few do.
fn may_have_other_form(url: &str) -> bool {
    let authority = without_scheme(url).split('/').next().unwrap_or(url);
    url.contains('%')
        || url.contains("/.")
        || authority
            .bytes()
            .any(|byte| byte == b':' || byte.is_ascii_uppercase())
        || url
            .split("://")
            .next()
            .is_some_and(|scheme| scheme != scheme.to_ascii_lowercase())
}

/// The host and path of a URL with all numbers replaced by 0, so that the URLs of two versions of a
/// file become equal.
fn shape(url: &str) -> String {
    let mut shape = String::new();
    for c in without_scheme(url).chars() {
        if !c.is_ascii_digit() {
            shape.push(c);
        } else if !shape.ends_with('0') {
            shape.push('0');
        }
    }
    shape
}

/// Whether a lock contains a reference, URL, package or git repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum LockCoverage {
    /// The lock contains the reference.
    Held {
        /// The name of the item in the lock.
        item: String,
    },
    /// The lock does not contain it.
    Missing {
        /// The image to add, with its upstream host. `None` if the reference is not an
        /// image, or is a destination with no upstream repository or with several.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ImageRef>,
        /// The URL of the file to add.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The reason, as messages show it.
        why: String,
    },
    /// The lock contains the repository, but the reference names neither a host nor a tag: a
    /// rewrite leaves it, and a node pulls the image from its default registry.
    // reports have only three states, so `Ambiguous` is serialized as `undecided`
    #[serde(rename = "undecided")]
    Ambiguous {
        /// The name of the locked item.
        item: String,
        /// The reason, and the fix.
        why: String,
    },
    /// It cannot be decided what the value names or whether the lock contains it, or the manifest
    /// accepts that the image is missing.
    Undecided {
        /// The reason, as messages show it.
        why: String,
    },
}

impl LockCoverage {
    /// The coverage of a reference that the lock lacks and that names neither an image nor a file.
    pub(crate) fn missing(why: String) -> LockCoverage {
        LockCoverage::Missing {
            name: None,
            url: None,
            why,
        }
    }

    /// The coverage of a file that the lock lacks.
    pub(crate) fn missing_url(url: &str, why: String) -> LockCoverage {
        LockCoverage::Missing {
            name: None,
            url: Some(url.to_owned()),
            why,
        }
    }

    /// Whether the lock does not contain the reference.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, LockCoverage::Missing { .. })
    }

    /// Whether a node may pull the image from the internet, although the lock contains the
    /// repository.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, LockCoverage::Ambiguous { .. })
    }
}

// Facts about public registries: their hosts, and names that no image has.

/// Whether `host` is a public registry or is named like one.
pub(super) fn is_registry(host: &str) -> bool {
    const HOSTS: [&str; 16] = [
        "cgr.dev",
        "container-registry.oracle.com",
        "dhi.io",
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "icr.io",
        "k8s.gcr.io",
        "lscr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "projects.packages.broadcom.com",
        "projects.registry.vmware.com",
        "public.ecr.aws",
        "quay.io",
        "releases-docker.jfrog.io",
    ];
    const ENDINGS: [&str; 6] = [
        ".amazonaws.com",
        ".azurecr.io",
        ".gcr.io",
        ".icr.io",
        ".ocir.io",
        ".pkg.dev",
    ];
    // `xpkg` has packages of Crossplane
    const BEGINNINGS: [&str; 4] = ["cr.", "docker.", "registry.", "xpkg."];
    let name = host.split(':').next().unwrap_or(host);
    HOSTS.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// The reason why no registry has an image of this name, if that is certain.
pub(super) fn why_impossible(reference: &ImageRef) -> Option<&'static str> {
    // in these registries, all images are below the name of an owner
    const OWNED: [&str; 5] = [
        "quay.io",
        "ghcr.io",
        "gcr.io",
        "public.ecr.aws",
        "registry.gitlab.com",
    ];
    let ImageRef {
        registry,
        repository,
        ..
    } = reference;
    match repository.strip_prefix("library/") {
        Some(name) if registry == "docker.io" && name.contains('.') => {
            Some("it is the name of a host, and its path is added elsewhere")
        }
        _ if OWNED.contains(&registry.as_str()) && !repository.contains('/') => Some(
            "all images of this registry have at least two path components; the second is added \
             elsewhere",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_registries_are_known_by_their_hosts() {
        for host in [
            "cgr.dev",
            "cp.icr.io",
            "cr.fluentbit.io",
            "docker.elastic.co",
            "fra.ocir.io",
            "public.ecr.aws:443",
            "registry.redhat.io",
            "us-docker.pkg.dev",
            "xpkg.crossplane.io",
        ] {
            assert!(is_registry(host), "{host}");
        }
        for host in ["example.com", "crates.io", "dl.k8s.io", "github.com"] {
            assert!(!is_registry(host), "{host}");
        }
    }

    #[test]
    fn urls_are_found_by_text_location_and_shape() {
        let urls = [
            "https://h/v2/b",
            "https://h/v1/a",
            "http://h/v1",
            "https://h/v1/",
        ];
        let urls = urls.map(|url| (Cow::Borrowed(url), url));
        let urls = LockedUrls::new(urls.to_vec());
        assert_eq!(urls.item("https://h/v1/a"), Some("https://h/v1/a"));
        assert_eq!(urls.item("https://h/v1/b"), None);
        assert_eq!(urls.item("https://z"), None);
        assert_eq!(urls.item_at_location("https://h/v1"), Some("http://h/v1"));
        assert_eq!(urls.similar("http://h/v10/b"), Some("https://h/v2/b"));
        assert_eq!(urls.similar("http://h/v10/c"), None);
    }

    #[test]
    fn urls_with_one_normal_form_are_the_same() {
        let locked = [
            "https://h.test/%7Euser/a",
            "HTTPS://Up.test:443/b",
            "https://h.test/plain~c",
        ];
        let urls = LockedUrls::new(locked.map(|url| (Cow::Borrowed(url), url)).to_vec());
        for (written, found) in [
            ("https://h.test/~user/a", Some(locked[0])),
            ("https://h.test/%7euser/a", Some(locked[0])),
            ("https://up.test/b", Some(locked[1])),
            ("https://H.test:443/x/../plain%7Ec", Some(locked[2])),
            ("https://h.test/user/a", None),
            ("https://h.test/~user/A", None),
        ] {
            assert_eq!(urls.item(written), found, "{written}");
        }
    }
}
