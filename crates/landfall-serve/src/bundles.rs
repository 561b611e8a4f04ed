//! What the bundles hold, by the names that clients use. Only the locks are read for it.

use super::chart_table::ChartTable;
use super::file_table::{self, FileTable};
use super::page::Attached;
use super::repository::{Repository, by_host};
use super::{BundleChanges, ServedBundle};
use landfall_content::LockEntry;
use landfall_item::{GeneratedFile, LockedChart, LockedItem, UrlFile, item_kinds};
use landfall_model::report::{EntryCount, EntryKind};
use landfall_model::{DestinationMap, Digest, alias_hosts, canonical_host};
use std::collections::{BTreeMap, BTreeSet};

/// The names of everything in the bundles.
pub(super) struct Bundles {
    repositories: BTreeMap<String, Repository>,
    pub(super) files: FileTable,
    pub(super) charts: ChartTable,
    pub(super) listings: Vec<BundleListing>,
    /// Names that two bundles give to different content, for the log.
    pub(super) notes: Vec<String>,
    /// The hosts by which clients name this server.
    own_hosts: BTreeSet<String>,
}

/// A bundle as the page shows it.
pub(super) struct BundleListing {
    pub(super) name: String,
    pub(super) digest: Option<Digest>,
    pub(super) missing: Vec<String>,
    /// The keys of its signatures.
    pub(super) signatures: Vec<String>,
    pub(super) items: Vec<ItemListing>,
    /// What is new in it, where that is known.
    pub(super) changes: Option<BundleChanges>,
}

/// An item as the page shows it.
pub(super) struct ItemListing {
    pub(super) kind: EntryKind,
    pub(super) name: String,
    /// `repository:tag` here, or at `registry`.
    pub(super) repository_tag: String,
    /// The registry that it is pulled from, where that is not this server.
    pub(super) registry: Option<String>,
    /// Its path below `/files/`, where it has one.
    pub(super) link: Option<String>,
    /// The paths of what stands beside it, such as its checksum file.
    pub(super) beside: Vec<String>,
    /// Its URLs.
    pub(super) urls: Vec<String>,
    pub(super) digest: Digest,
    /// In bytes, where it is known.
    pub(super) size: Option<u64>,
    /// The number of packages in a set of packages.
    pub(super) packages: usize,
    pub(super) platforms: BTreeSet<String>,
    /// What refers to it.
    pub(super) attached: Vec<Attached>,
    /// What the manifests are called that asked for it.
    pub(super) consumer_destinations: Option<String>,
    /// Whether the bundle lacks a part of it.
    pub(super) incomplete: bool,
}

impl ItemListing {
    /// Its kind and its number of packages, for counts.
    pub(super) fn counted(&self) -> (EntryKind, usize) {
        (self.kind, self.packages)
    }

    /// An item of which only this is known.
    pub(super) fn new(
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
            beside: Vec::new(),
            urls: Vec::new(),
            digest,
            size: None,
            packages: 0,
            platforms: BTreeSet::new(),
            attached: Vec::new(),
            consumer_destinations: None,
            incomplete: false,
        }
    }
}

impl Bundles {
    /// The names of everything in `bundles`. Where two give one full name to different content, the
    /// later one counts, and a note says so.
    pub(super) fn new(bundles: &[ServedBundle], mapping: &DestinationMap) -> Bundles {
        let mut all = Bundles {
            repositories: BTreeMap::new(),
            files: FileTable::default(),
            charts: ChartTable::default(),
            listings: Vec::new(),
            notes: Vec::new(),
            own_hosts: BTreeSet::from([mapping.target().registry.clone()]),
        };
        for bundle in bundles {
            all.add(bundle, mapping);
        }
        all
    }

    /// Offers metadata that is made here.
    pub(super) fn add_made(&mut self, made: &[GeneratedFile]) {
        let forms: Vec<UrlFile<'_>> = made.iter().map(GeneratedFile::form).collect();
        self.files.add(&forms, &mut self.notes);
    }

    /// Makes `host` (`host:port`) one more name of this server.
    pub(super) fn also_called(&mut self, host: String) {
        self.own_hosts.insert(host);
    }

    /// Whether clients mean this server by `host` (`host:port`).
    pub(super) fn is_own_host(&self, host: &str) -> bool {
        self.own_hosts.contains(host)
    }

    /// Whether there are images that come from `host`, or from another name of it.
    pub(super) fn has_source(&self, host: &str) -> bool {
        let is_source = |host: &str| {
            let prefix = by_host(host, "");
            let next = self.repositories.range(prefix.clone()..).next();
            next.is_some_and(|(name, _)| name.starts_with(&prefix))
        };
        let host = canonical_host(host);
        is_source(host) || alias_hosts(host).any(is_source)
    }

    fn add(&mut self, bundle: &ServedBundle, mapping: &DestinationMap) {
        let is_there = |digest: &Digest| matches!(bundle.blobs.stat(digest), Ok(Some(_)));
        let mut items = Vec::new();
        for item in bundle.lock.items() {
            let entry = item.entry();
            // what images are made of is not asked for at a registry: they are pulled from there
            let registry = bundle
                .registry
                .as_ref()
                .filter(|_| !item.is_served_from_registry());
            let places = item.destinations(registry.unwrap_or(mapping)).into_iter();
            let places = places.map(|place| place.repository);
            let repositories: Vec<String> = places.chain([item.own_repository()]).collect();
            if registry.is_none() {
                self.add_item(item, &entry, &repositories, &bundle.name, is_there);
            }
            let files = item.files();
            self.files.add(&files, &mut self.notes);
            if let Some(chart) = item.as_chart().and_then(LockedChart::archive) {
                self.charts.add(chart, &mut self.notes);
            }
            let attached = entry.referrers.iter().map(|referrer| Attached {
                descriptor: referrer.descriptor.clone(),
                tag: referrer.tag.clone(),
            });
            let is_whole = || {
                entry
                    .parts
                    .iter()
                    .all(|part| is_there(&part.descriptor.digest))
            };
            items.push(ItemListing {
                kind: entry.kind,
                repository_tag: format!("{}:{}", repositories[0], item.tag()),
                registry: registry.map(|mapping| mapping.target().registry.clone()),
                link: files.first().and_then(|file| file_table::link(file.name)),
                beside: files
                    .iter()
                    .skip(1)
                    .filter_map(|file| file_table::link(file.name))
                    .collect(),
                urls: files
                    .first()
                    .map(|file| file.urls.iter().map(ToString::to_string).collect())
                    .unwrap_or_default(),
                digest: entry.digest.clone(),
                size: Some(entry.size()),
                packages: entry.package_count(),
                platforms: item.platforms().unwrap_or_default(),
                attached: attached.collect(),
                consumer_destinations: bundle.lock.name.clone(),
                incomplete: registry.is_none() && !is_whole(),
                name: entry.name,
            });
        }
        self.listings.push(BundleListing {
            name: bundle.name.clone(),
            digest: bundle.digest.clone(),
            missing: bundle.missing.clone(),
            signatures: bundle.signatures.clone(),
            items,
            changes: bundle.changes.clone(),
        });
    }

    fn add_item(
        &mut self,
        item: &dyn LockedItem,
        entry: &LockEntry,
        repositories: &[String],
        bundle: &str,
        is_there: impl Fn(&Digest) -> bool,
    ) {
        let (tag, has_urls) = (item.tag(), !item.files().is_empty());
        for (at, name) in repositories.iter().enumerate() {
            let repository = self.repositories.entry(name.clone()).or_default();
            for part in entry.parts.iter().filter(|part| part.is_manifest()) {
                if !entry.only_refers(&part.descriptor.digest) {
                    repository.add(part.descriptor.clone());
                }
            }
            let earlier = repository.add_tag(&tag, &entry.name, entry.top.clone());
            // of an item with URLs, the notes speak of its URLs
            let is_told = at == 0 && !has_urls;
            if let Some(earlier) =
                earlier.filter(|earlier| is_told && earlier.digest != entry.digest)
            {
                let (name, old, new) = (&entry.name, earlier.digest, &entry.digest);
                self.notes
                    .push(format!("{name}: {new} of {bundle} is served, not {old}"));
            }
            for referrer in entry
                .referrers
                .iter()
                .filter(|referrer| is_there(&referrer.descriptor.digest))
            {
                if let Some(tag) = &referrer.tag {
                    repository.add_tag(
                        tag,
                        &format!("{}:{tag}", item.source()),
                        referrer.descriptor.clone(),
                    );
                }
                repository.add(referrer.descriptor.clone());
            }
        }
    }

    /// How many items of each kind there are.
    pub(super) fn counts(&self) -> Vec<EntryCount> {
        let items = || self.listings.iter().flat_map(|bundle| &bundle.items);
        item_kinds()
            .map(|kind| EntryCount::new(kind, items().map(ItemListing::counted)))
            .collect()
    }

    /// The repositories that `name` stands for, the best match first. `ns` is containerd's
    /// parameter for the source host, which may have other names. A client that names this server
    /// in it asks for a name without a host.
    pub(super) fn repositories(&self, name: &str, ns: Option<&str>) -> Vec<&Repository> {
        let Some(host) = ns
            .map(str::to_ascii_lowercase)
            .filter(|ns| !self.own_hosts.contains(ns))
        else {
            return self.repositories.get(name).into_iter().collect();
        };
        let host = canonical_host(&host);
        let of = |host: &str| self.repositories.get(&by_host(host, name));
        of(host)
            .into_iter()
            .chain(alias_hosts(host).filter_map(of))
            .collect()
    }

    /// The names of all repositories, sorted.
    pub(super) fn repository_names(&self) -> impl Iterator<Item = &String> {
        self.repositories.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, image};
    use super::*;
    use landfall_content::MemoryBlobs;
    use landfall_item::LockedImage;
    use landfall_item::file_repository;
    use landfall_item::lockfile::Lock;
    use landfall_model::Digest;
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

    fn bundles(locks: Vec<Lock>) -> Bundles {
        let served: Vec<ServedBundle> = locks.into_iter().map(served).collect();
        Bundles::new(
            &served,
            &DestinationMap::to("127.0.0.1:5000".parse().unwrap()),
        )
    }

    fn digest(bundles: &Bundles, name: &str, ns: Option<&str>, tag: &str) -> Option<Digest> {
        let repositories = bundles.repositories(name, ns);
        let found = repositories
            .iter()
            .find_map(|repository| repository.tag(tag).unwrap());
        found.map(|descriptor| descriptor.digest.clone())
    }

    #[test]
    fn an_image_answers_to_its_destination_and_to_its_source() {
        let nginx = image("docker.io/library/nginx:1.27", b"nginx");
        let local = image("localhost:5001/a/b:1", b"local");
        let pause = image("registry.k8s.io/pause:3.10", b"pause");
        let older = image("k8s.gcr.io/pause:3.1", b"older");
        let (of_nginx, of_local) = (Some(nginx.digest.clone()), Some(local.digest.clone()));
        let (of_pause, of_older) = (Some(pause.digest.clone()), Some(older.digest.clone()));
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
    }

    #[test]
    fn one_name_with_two_meanings_is_answered_with_both() {
        let (a, b) = (
            image("quay.io/x/app:1", b"a"),
            image("ghcr.io/x/app:1", b"b"),
        );
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
            "equal content has one meaning"
        );
        assert!(bundles.notes.is_empty());
    }

    #[test]
    fn the_later_bundle_counts_and_a_note_says_so() {
        let (old, new) = (
            image("quay.io/x/app:1", b"old"),
            image("quay.io/x/app:1", b"new"),
        );
        let (of_old, of_new) = (old.digest.clone(), new.digest.clone());
        let bundles = bundles(vec![lock(vec![old]), lock(vec![new])]);
        assert_eq!(digest(&bundles, "x/app", None, "1"), Some(of_new));
        assert!(
            bundles.repositories("x/app", None)[0]
                .manifest(&of_old)
                .is_some()
        );
        assert_eq!(bundles.notes.len(), 1, "{:?}", bundles.notes);
    }

    #[test]
    fn files_are_artifacts_too() {
        let kubelet = file("https://dl.k8s.io/v1/kubelet", b"kubelet");
        let (place, tag) = (file_repository(&kubelet.name), kubelet.digest.short(12));
        let bundles = bundles(vec![Lock {
            version: 1,
            files: vec![kubelet],
            ..Lock::default()
        }]);
        assert!(digest(&bundles, &place, None, &tag).is_some());
        assert_eq!(
            bundles.listings[0].items[0].repository_tag,
            format!("{place}:{tag}")
        );
        assert!(
            bundles.listings[0].items[0].incomplete,
            "the memory holds nothing"
        );
    }
}
