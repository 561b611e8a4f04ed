//! The content that the server offers, by the names that clients use. Except for generated package
//! metadata, the names come from the locks alone.

mod chart_table;
mod file_table;
mod repository;

use self::chart_table::ChartTable;
use self::file_table::{FileTable, ProviderTable};
use self::repository::repository_of_host;
use crate::{BundleChanges, ServedBundle};
use landfall_content::LockEntry;
use landfall_item::{GeneratedFile, LockedItem, UrlFile, item_kinds};
use landfall_model::report::{EntryCount, EntryKind};
use landfall_model::{
    Descriptor, DestinationMap, Digest, alias_hosts, canonical_host, host_component,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::chart_table::CHART_INDEX;
pub(crate) use self::file_table::{
    GitTable, ServedGitRepository, UrlPath, file_link, media_type_of,
};
pub(crate) use self::repository::{ServedRepository, pushed_names};

/// The maximum number of files of one item that the page links, besides the item's own file: a set
/// of packages has thousands.
const MAX_LINKS: usize = 20;

/// The names of everything in the bundles.
pub(crate) struct BundleCatalog {
    repositories: BTreeMap<String, ServedRepository>,
    /// The destinations of images below their source hosts. A client whose mirror has a path, or
    /// that rewrites names, asks for the destination and names the source host as well.
    by_host_and_destination: BTreeMap<String, ServedRepository>,
    pub(crate) files: FileTable,
    pub(crate) charts: ChartTable,
    pub(crate) git: GitTable,
    pub(crate) providers: ProviderTable,
    pub(crate) listings: Vec<BundleListing>,
    /// One line for each name that means different content in two bundles or for two items.
    pub(crate) warnings: Vec<String>,
    /// The hosts (`host:port`) by which clients name this server.
    own_hosts: BTreeSet<String>,
    mapping: DestinationMap,
}

impl BundleCatalog {
    /// Reads the locks of `bundles`. If one full name means different content in two bundles, the
    /// later bundle wins, and a warning is recorded.
    pub(crate) fn new(bundles: &[ServedBundle], mapping: &DestinationMap) -> BundleCatalog {
        let mut catalog = BundleCatalog {
            repositories: BTreeMap::new(),
            by_host_and_destination: BTreeMap::new(),
            files: FileTable::default(),
            charts: ChartTable::default(),
            git: GitTable::default(),
            providers: ProviderTable::default(),
            listings: Vec::new(),
            warnings: Vec::new(),
            own_hosts: BTreeSet::from([mapping.target().registry.clone()]),
            mapping: mapping.clone(),
        };
        for bundle in bundles {
            catalog.add_bundle(bundle, mapping);
        }
        catalog
    }

    /// Adds package metadata that the server generates itself.
    pub(crate) fn add_generated(&mut self, made: &[GeneratedFile]) {
        let forms: Vec<UrlFile<'_>> = made.iter().map(GeneratedFile::form).collect();
        self.files.add(&forms, &mut self.warnings);
    }

    /// Makes `host` (`host:port`) another name of this server.
    pub(crate) fn add_own_host(&mut self, host: String) {
        self.own_hosts.insert(host);
    }

    /// Whether `host` (`host:port`) is a name of this server.
    pub(crate) fn is_own_host(&self, host: &str) -> bool {
        self.own_hosts.contains(host)
    }

    /// The name of an image of `host` at its source, if `name` has the path of the host's mirror
    /// after the host, as clients of a mirror with a path ask for it.
    pub(crate) fn source_name(&self, name: &str, host: &str) -> Option<String> {
        let path = self.mapping.host_path(host);
        let path = self.mapping.own_destination(&path).repository;
        let mut paths = [path, host_component(host)].into_iter();
        let below = |path: String| name.strip_prefix(&format!("{host}/{path}/"));
        Some(format!("{host}/{}", paths.find_map(below)?))
    }

    /// Whether the source host of any repository is `host` or one of its aliases.
    pub(crate) fn has_source(&self, host: &str) -> bool {
        let host = canonical_host(host);
        self.has_repository_of(host) || alias_hosts(host).any(|other| self.has_repository_of(other))
    }

    fn has_repository_of(&self, host: &str) -> bool {
        let prefix = repository_of_host(host, "");
        self.repositories
            // the names are sorted, so the first one from the prefix on decides
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(name, _)| name.starts_with(&prefix))
    }

    fn add_bundle(&mut self, bundle: &ServedBundle, mapping: &DestinationMap) {
        let items = bundle
            .lock
            .items()
            .map(|item| self.add_item(bundle, item, mapping))
            .collect();
        self.listings.push(BundleListing {
            name: bundle.name.clone(),
            digest: bundle.digest.clone(),
            missing: bundle.missing.clone(),
            signatures: bundle.signatures.clone(),
            items,
            changes: bundle.changes.clone(),
        });
    }

    /// Adds the item to the tables and returns its listing.
    fn add_item(
        &mut self,
        bundle: &ServedBundle,
        item: LockedItem<'_>,
        mapping: &DestinationMap,
    ) -> ItemListing {
        let entry = item.entry();
        // images of a registry are listed here, but clients pull them from the registry itself
        let registry = bundle
            .registry
            .as_ref()
            .filter(|_| !item.is_served_from_registry());
        let mut repositories: Vec<String> = item
            .destinations(registry.unwrap_or(mapping))
            .into_iter()
            .map(|destination| destination.repository)
            .collect();
        let own = item.own_repository();
        let below_host: Vec<String> = match item {
            LockedItem::Image(image) => {
                let host = &image.name.registry;
                let names = repositories.iter();
                let names = names.map(|name| repository_of_host(host, name));
                names.filter(|name| *name != own).collect()
            }
            _ => Vec::new(),
        };
        // also under the source host of the item, for clients that name this host
        repositories.push(own);
        let mut incomplete = false;
        if registry.is_none() {
            self.add_manifests(bundle, item, &entry, &repositories, &below_host);
            incomplete = entry
                .parts
                .iter()
                .any(|part| !has_blob(bundle, &part.descriptor.digest));
        }
        let files = item.files();
        self.files.add(&files, &mut self.warnings);
        match item {
            LockedItem::Chart(chart) => {
                if let Some(archive) = chart.archive() {
                    self.charts.add(archive, &mut self.warnings);
                }
            }
            LockedItem::Git(repository) => self.git.add(repository, &mut self.warnings),
            LockedItem::Provider(provider) => self.providers.add(provider, &mut self.warnings),
            LockedItem::Image(_) | LockedItem::File(_) | LockedItem::Packages(_) => {}
        }
        // a set of packages or a provider has several files, and is not one of them
        let own_file = files.first().filter(|file| *file.digest == entry.digest);
        let urls = match own_file {
            Some(file) => file.urls.iter().map(ToString::to_string).collect(),
            None => Vec::new(),
        };
        let others = &files[usize::from(own_file.is_some())..];
        let attached = entry.referrers.iter().map(|referrer| AttachedManifest {
            descriptor: referrer.descriptor.clone(),
            tag: referrer.tag.clone(),
        });
        ItemListing {
            kind: entry.kind,
            repository_tag: format!("{}:{}", repositories[0], item.tag()),
            registry: registry.map(|mapping| mapping.target().registry.clone()),
            link: own_file.and_then(|file| file_link(file.name)),
            other_links: others
                .iter()
                .take(MAX_LINKS)
                .filter_map(|file| file_link(file.name))
                .collect(),
            unlisted_files: others.len().saturating_sub(MAX_LINKS),
            urls,
            digest: entry.digest.clone(),
            size: Some(entry.size()),
            packages: entry.package_count(),
            platforms: item.platforms().unwrap_or_default(),
            attached: attached.collect(),
            requested_by: bundle.lock.name.clone(),
            incomplete,
            name: entry.name,
        }
    }

    /// Adds the manifests and tags of an item to each of its repositories, and to its destinations
    /// `below_host`.
    fn add_manifests(
        &mut self,
        bundle: &ServedBundle,
        item: LockedItem<'_>,
        entry: &LockEntry,
        repositories: &[String],
        below_host: &[String],
    ) {
        let tag = item.tag();
        // an item with URLs gets a warning for each of its URLs, from the file table
        let warns_here = item.files().is_empty();
        for (index, name) in repositories.iter().chain(below_host).enumerate() {
            let table = if index < repositories.len() {
                &mut self.repositories
            } else {
                &mut self.by_host_and_destination
            };
            let repository = table.entry(name.clone()).or_default();
            for part in entry.parts.iter().filter(|part| part.is_manifest()) {
                // referrers are added below, and only those that the bundle has
                if !entry.only_refers(&part.descriptor.digest) {
                    repository.add_manifest(part.descriptor.clone());
                }
            }
            let previous = repository.add_tag(&tag, &entry.name, entry.top.clone());
            if let Some(previous) = previous
                && previous.digest != entry.digest
                // one warning for each item, not for each of its repositories
                && index == 0
                && warns_here
            {
                self.warnings.push(format!(
                    "{}: serving {} of {} instead of {}",
                    entry.name, entry.digest, bundle.name, previous.digest
                ));
            }
            for referrer in &entry.referrers {
                // a referrer, such as a signature, that a partial bundle lacks must not be listed
                if !has_blob(bundle, &referrer.descriptor.digest) {
                    continue;
                }
                if let Some(tag) = &referrer.tag {
                    let full_name = format!("{}:{tag}", item.source());
                    repository.add_tag(tag, &full_name, referrer.descriptor.clone());
                }
                repository.add_manifest(referrer.descriptor.clone());
            }
        }
    }

    /// The number of items of each kind. Like on the page, an item of several bundles is one, as
    /// the last of them has it.
    pub(crate) fn counts(&self) -> Vec<EntryCount> {
        item_kinds()
            .map(|kind| {
                let items = self.listings.iter().flat_map(|bundle| &bundle.items);
                let named = items
                    .filter(|item| item.kind == kind)
                    .map(|item| (&*item.name, item.kind_and_packages()));
                let newest: BTreeMap<&str, (EntryKind, usize)> = named.collect();
                EntryCount::new(kind, newest.into_values())
            })
            .collect()
    }

    /// The repositories that `name` may mean, the best match first.
    ///
    /// `ns` is the source host, as containerd passes it to a mirror. Without `ns`, or if `ns` is a
    /// name of this server, `name` is looked up as it is.
    pub(crate) fn repositories(&self, name: &str, ns: Option<&str>) -> Vec<&ServedRepository> {
        let Some(host) = ns
            .map(str::to_ascii_lowercase)
            .filter(|ns| !self.own_hosts.contains(ns))
        else {
            return self.repositories.get(name).into_iter().collect();
        };
        let host = canonical_host(&host);
        let mut names = vec![repository_of_host(host, name)];
        names.extend(alias_hosts(host).map(|other| repository_of_host(other, name)));
        // the path of a mirror may be the host itself
        let is_below = |host: &str| name.starts_with(&repository_of_host(host, ""));
        if is_below(host) || alias_hosts(host).any(is_below) {
            names.push(name.to_owned());
        }
        // the name at the source wins over that of the destination of another image
        [&self.repositories, &self.by_host_and_destination]
            .into_iter()
            .flat_map(|table| names.iter().filter_map(move |name| table.get(name)))
            .collect()
    }

    /// The names of all repositories, sorted.
    pub(crate) fn repository_names(&self) -> impl Iterator<Item = &String> {
        self.repositories.keys()
    }
}

fn has_blob(bundle: &ServedBundle, digest: &Digest) -> bool {
    matches!(bundle.blobs.stat(digest), Ok(Some(_)))
}

// The entries of the page: bundles, their items, and the manifests that are attached to an item.

/// A bundle as the page lists it.
pub(crate) struct BundleListing {
    pub(crate) name: String,
    pub(crate) digest: Option<Digest>,
    /// The items that a partial bundle lacks, by kind and name.
    pub(crate) missing: Vec<String>,
    /// The keys of its signatures, unverified.
    pub(crate) signatures: Vec<String>,
    pub(crate) items: Vec<ItemListing>,
    pub(crate) changes: Option<BundleChanges>,
}

/// An item as the page lists it.
pub(crate) struct ItemListing {
    pub(crate) kind: EntryKind,
    pub(crate) name: String,
    /// `repository:tag` at this server, or at `registry`.
    pub(crate) repository_tag: String,
    /// The registry to pull it from, if that is not this server.
    pub(crate) registry: Option<String>,
    /// The path of the file at this server (`/files/…`), if the item is a file.
    pub(crate) link: Option<String>,
    /// The paths of other files: the sidecars of a file, or the files of a set of packages or of a
    /// provider. If there are many, only the first ones.
    pub(crate) other_links: Vec<String>,
    /// The number of other files that are not in `other_links`.
    pub(crate) unlisted_files: usize,
    /// The original URLs of the file.
    pub(crate) urls: Vec<String>,
    pub(crate) digest: Digest,
    /// In bytes; unknown for pushed manifests.
    pub(crate) size: Option<u64>,
    /// The number of packages in a set of packages.
    pub(crate) packages: usize,
    pub(crate) platforms: BTreeSet<String>,
    pub(crate) attached: Vec<AttachedManifest>,
    /// The `metadata.name` of the YAML manifests that were locked, if all have the same one.
    pub(crate) requested_by: Option<String>,
    /// Whether the bundle lacks a part of the item.
    pub(crate) incomplete: bool,
}

/// A manifest that refers to an image: a signature, an attestation or an SBOM.
#[derive(Debug, Clone)]
pub(crate) struct AttachedManifest {
    pub(crate) descriptor: Descriptor,
    /// The tag that cosign's naming convention gives it (`sha256-….sig`).
    pub(crate) tag: Option<String>,
}

impl ItemListing {
    /// A listing with only these properties, as for a pushed tag.
    pub(crate) fn new(
        kind: EntryKind,
        name: String,
        repository_tag: String,
        digest: Digest,
    ) -> ItemListing {
        ItemListing {
            kind,
            name,
            repository_tag,
            registry: None,
            link: None,
            other_links: Vec::new(),
            unlisted_files: 0,
            urls: Vec::new(),
            digest,
            size: None,
            packages: 0,
            platforms: BTreeSet::new(),
            attached: Vec::new(),
            requested_by: None,
            incomplete: false,
        }
    }

    /// Kind and number of packages, as `EntryCount` adds them up.
    pub(crate) fn kind_and_packages(&self) -> (EntryKind, usize) {
        (self.kind, self.packages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{file, image};
    use landfall_content::MemoryBlobs;
    use landfall_item::lockfile::Lock;
    use landfall_item::{
        LockedImage, LockedProvider, LockedProviderPackage, LockedSidecar, file_repository,
    };
    use landfall_model::config::{Site, destination_map};
    use std::path::Path;
    use std::sync::Arc;

    fn served(lock: Lock) -> ServedBundle {
        ServedBundle {
            name: "b.tar.zst".into(),
            digest: None,
            missing: vec![],
            signatures: vec![],
            lock,
            blobs: Arc::new(MemoryBlobs::default()),
            changes: None,
            registry: None,
        }
    }

    fn lock(images: Vec<LockedImage>) -> Lock {
        Lock {
            version: 1,
            images,
            ..Lock::default()
        }
    }

    fn bundles(locks: Vec<Lock>) -> BundleCatalog {
        let served: Vec<ServedBundle> = locks.into_iter().map(served).collect();
        BundleCatalog::new(
            &served,
            &DestinationMap::to("127.0.0.1:5000".parse().unwrap()),
        )
    }

    fn digest(bundles: &BundleCatalog, name: &str, ns: Option<&str>, tag: &str) -> Option<Digest> {
        let repositories = bundles.repositories(name, ns);
        let found = repositories
            .iter()
            .find_map(|repository| repository.tag(tag).unwrap());
        found.map(|descriptor| descriptor.digest.clone())
    }

    #[test]
    fn an_image_is_found_by_destination_and_by_source() {
        let nginx = image("docker.io/library/nginx:1.27", b"nginx");
        let local = image("localhost:5001/a/b:1", b"local");
        let pause = image("registry.k8s.io/pause:3.10", b"pause");
        let older = image("k8s.gcr.io/pause:3.1", b"older");
        let of_nginx = Some(nginx.digest.clone());
        let of_local = Some(local.digest.clone());
        let of_pause = Some(pause.digest.clone());
        let of_older = Some(older.digest.clone());
        let bundles = bundles(vec![lock(vec![nginx, local, pause, older])]);
        assert_eq!(digest(&bundles, "library/nginx", None, "1.27"), of_nginx);
        assert_eq!(
            digest(&bundles, "docker.io/library/nginx", None, "1.27"),
            of_nginx
        );
        assert_eq!(
            digest(&bundles, "library/nginx", Some("docker.io"), "1.27"),
            of_nginx
        );
        assert_eq!(
            digest(
                &bundles,
                "library/nginx",
                Some("registry-1.docker.io"),
                "1.27"
            ),
            of_nginx
        );
        assert_eq!(
            digest(&bundles, "library/nginx", Some("127.0.0.1:5000"), "1.27"),
            of_nginx
        );
        assert_eq!(
            digest(&bundles, "library/nginx", Some("quay.io"), "1.27"),
            None
        );
        assert_eq!(digest(&bundles, "localhost_5001/a/b", None, "1"), of_local);
        assert_eq!(
            digest(&bundles, "a/b", Some("localhost:5001"), "1"),
            of_local
        );
        assert_eq!(
            digest(&bundles, "pause", Some("k8s.gcr.io"), "3.10"),
            of_pause,
            "by its other host"
        );
        assert_eq!(
            digest(&bundles, "pause", Some("registry.k8s.io"), "3.1"),
            of_older
        );
        for (name, host, tag, found) in [
            ("docker.io/library/nginx", "docker.io", "1.27", of_nginx),
            ("registry.k8s.io/pause", "k8s.gcr.io", "3.10", of_pause),
            ("docker.io/library/nginx", "quay.io", "1.27", None),
        ] {
            let by_path = digest(&bundles, name, Some(host), tag);
            assert_eq!(by_path, found, "{name}, the path of a mirror of {host}");
        }
    }

    #[test]
    fn a_destination_is_found_with_the_source_host_too() {
        let nginx = image("docker.io/library/nginx:1.27", b"nginx");
        let coredns = image("registry.k8s.io/coredns/coredns:v1", b"coredns");
        let other = image("registry.k8s.io/mirror/dns:v1", b"other");
        let [of_nginx, of_coredns, of_other] =
            [&nginx, &coredns, &other].map(|image| Some(image.digest.clone()));
        let site = "apiVersion: landfall/v1\nkind: Site\nregistry: {address: 'r:5', \
                    paths: {docker.io: hub, registry.k8s.io/coredns/coredns: mirror/dns}}\n";
        let site = Site::parse(Path::new("site.yaml"), site).unwrap();
        let mapping = destination_map("r:5".parse().unwrap(), Some(&site));
        let served = served(lock(vec![nginx, coredns, other]));
        let bundles = BundleCatalog::new(&[served], &mapping);
        for (name, ns, tag, found) in [
            ("hub/library/nginx", "docker.io", "1.27", of_nginx.clone()),
            ("library/nginx", "docker.io", "1.27", of_nginx),
            ("hub/library/nginx", "quay.io", "1.27", None),
            ("coredns/coredns", "k8s.gcr.io", "v1", of_coredns),
            ("mirror/dns", "registry.k8s.io", "v1", of_other),
        ] {
            assert_eq!(digest(&bundles, name, Some(ns), tag), found, "{name} {ns}");
        }
        let mut names = bundles.repository_names();
        assert!(!names.any(|name| name.starts_with("docker.io/hub/")));
    }

    #[test]
    fn an_ambiguous_name_is_an_error_with_both_images() {
        let a = image("quay.io/x/app:1", b"a");
        let b = image("ghcr.io/x/app:1", b"b");
        let of_a = Some(a.digest.clone());
        let same = [
            image("quay.io/x/same:1", b"s"),
            image("ghcr.io/x/same:1", b"s"),
        ];
        let bundles = bundles(vec![lock([vec![a, b], same.to_vec()].concat())]);
        let both = bundles.repositories("x/app", None)[0]
            .tag("1")
            .unwrap_err()
            .message;
        assert!(
            both.contains("quay.io/x/app:1") && both.contains("ghcr.io/x/app:1"),
            "{both}"
        );
        assert_eq!(digest(&bundles, "quay.io/x/app", None, "1"), of_a);
        assert_eq!(digest(&bundles, "x/app", Some("quay.io"), "1"), of_a);
        assert!(
            digest(&bundles, "x/same", None, "1").is_some(),
            "equal content is not ambiguous"
        );
        assert!(bundles.warnings.is_empty());
    }

    #[test]
    fn the_later_bundle_wins_and_a_warning_reports_it() {
        let old = image("quay.io/x/app:1", b"old");
        let new = image("quay.io/x/app:1", b"new");
        let of_old = old.digest.clone();
        let of_new = new.digest.clone();
        let bundles = bundles(vec![lock(vec![old]), lock(vec![new])]);
        assert_eq!(digest(&bundles, "x/app", None, "1"), Some(of_new));
        assert!(
            bundles.repositories("x/app", None)[0]
                .manifest(&of_old)
                .is_some()
        );
        assert_eq!(bundles.warnings.len(), 1, "{:?}", bundles.warnings);
        let counts = bundles.counts();
        let images = counts.iter().find(|count| count.kind == EntryKind::Image);
        assert_eq!(images.map(|count| count.entries), Some(1));
    }

    #[test]
    fn files_are_artifacts_too() {
        let kubelet = file("https://dl.k8s.io/v1/kubelet", b"kubelet");
        let repository = file_repository(&kubelet.name);
        let tag = kubelet.digest.short(12);
        let bundles = bundles(vec![Lock {
            version: 1,
            files: vec![kubelet],
            ..Lock::default()
        }]);
        assert!(digest(&bundles, &repository, None, &tag).is_some());
        assert_eq!(
            bundles.listings[0].items[0].repository_tag,
            format!("{repository}:{tag}")
        );
        assert!(
            bundles.listings[0].items[0].incomplete,
            "there is no content in memory"
        );
    }

    #[test]
    fn the_page_links_a_limited_number_of_files_and_a_provider_has_no_own_file() {
        let package = |platform: &str| LockedProviderPackage {
            platform: platform.parse().unwrap(),
            url: format!("https://h/p_{platform}.zip"),
            digest: Digest::sha256(platform.as_bytes()),
            size: 1,
            h1: "h1:".into(),
        };
        let provider = LockedProvider {
            name: "provider:registry.opentofu.org/a/b:1.0.0".parse().unwrap(),
            digest: Digest::sha256(b"index"),
            platforms: Vec::new(),
            packages: ["linux_amd64", "linux_arm64"].map(package).to_vec(),
        };
        let mut kubelet = file("https://dl.k8s.io/v1/kubelet", b"kubelet");
        kubelet.sidecars = (0..30)
            .map(|n| LockedSidecar {
                url: format!("https://dl.k8s.io/v1/kubelet.{n}"),
                digest: Digest::sha256(b"sum"),
                size: 3,
            })
            .collect();
        let bundles = bundles(vec![Lock {
            version: 1,
            files: vec![kubelet],
            providers: vec![provider],
            ..Lock::default()
        }]);
        let [file, provider] = &bundles.listings[0].items[..] else {
            panic!("two items")
        };
        assert_eq!(file.link.as_deref(), Some("/files/dl.k8s.io/v1/kubelet"));
        assert_eq!((file.other_links.len(), file.unlisted_files), (20, 10));
        assert_eq!((&provider.link, provider.urls.len()), (&None, 0));
        assert_eq!(
            provider.other_links,
            ["/files/h/p_linux_amd64.zip", "/files/h/p_linux_arm64.zip"]
        );
    }
}
