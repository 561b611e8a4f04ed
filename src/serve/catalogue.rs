//! What the bundles hold, by the names under which it is asked for. Nothing is read for it but locks.

use super::files::FileTable;
use super::reply::Problem;
use crate::content::BlobRead;
use crate::content::Entry;
use crate::item;
use crate::lockfile::{Image, Lock};
use crate::model::{Descriptor, Digest, Referring, referring};
use crate::model::{Mapping, file_repository, file_tag, host_component};
use crate::report::Kind;
use crate::rewrite::other_hosts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// A bundle, or whatever else has a lock and content.
pub struct Source {
    /// What people call it, such as the file's name.
    pub name: String,
    /// Its digest, where it has one.
    pub digest: Option<Digest>,
    /// What was wanted but is not in it, by kind and name. Nothing where it is whole.
    pub lacks: Vec<String>,
    /// What it holds.
    pub lock: Lock,
    /// The bytes.
    pub blobs: Arc<dyn BlobRead>,
}

/// The names of everything in the sources.
pub(super) struct Catalogue {
    repositories: BTreeMap<String, Repository>,
    pub(super) files: FileTable,
    pub(super) bundles: Vec<Bundle>,
    /// What was decided between the sources, for whoever starts the server.
    pub(super) notes: Vec<String>,
    /// Registry hosts that mean this server.
    own: BTreeSet<String>,
}

/// A source as the page shows it.
pub(super) struct Bundle {
    pub(super) name: String,
    pub(super) digest: Option<Digest>,
    pub(super) lacks: Vec<String>,
    pub(super) items: Vec<Item>,
}

/// A lock entry as the page shows it.
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// `repository:tag` here.
    pub(super) place: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// Whether a part of it is not there.
    pub(super) incomplete: bool,
}

/// A repository as clients name it: what one or more source repositories have become here.
#[derive(Default)]
pub(super) struct Repository {
    /// Tag -> full names that have become it, each with what it means.
    tags: BTreeMap<String, BTreeMap<String, Descriptor>>,
    manifests: BTreeMap<Digest, Descriptor>,
    referrers: OnceLock<BTreeMap<Digest, Vec<Referring>>>,
}

impl Catalogue {
    /// The names of all that `sources` hold. Where two of them give one full name two meanings, the later
    /// one counts, and a note says so.
    pub(super) fn new(sources: &[Source], mapping: &Mapping) -> Catalogue {
        let mut catalogue = Catalogue {
            repositories: BTreeMap::new(),
            files: FileTable::default(),
            bundles: Vec::new(),
            notes: Vec::new(),
            own: BTreeSet::from([mapping.target().registry.clone()]),
        };
        for source in sources {
            catalogue.add(source, mapping);
        }
        catalogue
    }

    /// Makes `host` (`host:port`) one more name of this server.
    pub(super) fn also_called(&mut self, host: String) {
        self.own.insert(host);
    }

    fn add(&mut self, source: &Source, mapping: &Mapping) {
        let lock = &source.lock;
        let mut items = Vec::new();
        for image in &lock.images {
            let mut places: Vec<String> =
                mapping.image(&image.name).into_iter().map(|place| place.repository).collect();
            let first = places.first().cloned().unwrap_or_default();
            places.push(by_host(&image.name.registry, &image.name.repository));
            self.add_image(image, &places, source);
            items.push((Kind::Image, format!("{first}:{}", image.destination_tag())));
        }
        let entries = item::entries(lock);
        for (file, entry) in lock.files.iter().zip(&entries[lock.images.len()..]) {
            let first = mapping.file(&file.name).repository;
            let tag = file_tag(&file.digest);
            for place in BTreeSet::from([first.clone(), file_repository(&file.name)]) {
                let repository = self.repositories.entry(place).or_default();
                repository.manifests.insert(entry.top.digest.clone(), entry.top.clone());
                let names = repository.tags.entry(tag.clone()).or_default();
                names.insert(file.name.clone(), entry.top.clone());
            }
            items.push((Kind::File, format!("{first}:{tag}")));
            self.files.add(file, &mut self.notes);
        }
        let there = |entry: &Entry| {
            entry.parts.iter().all(|part| matches!(source.blobs.stat(&part.descriptor.digest), Ok(Some(_))))
        };
        let items = entries.iter().zip(items).map(|(entry, (kind, place))| Item {
            kind,
            name: entry.name.clone(),
            place,
            digest: entry.digest.clone(),
            size: entry.size(),
            incomplete: !there(entry),
        });
        self.bundles.push(Bundle {
            name: source.name.clone(),
            digest: source.digest.clone(),
            lacks: source.lacks.clone(),
            items: items.collect(),
        });
    }

    fn add_image(&mut self, image: &Image, places: &[String], source: &Source) {
        let name = image.name.to_string();
        for (at, place) in places.iter().enumerate() {
            let repository = self.repositories.entry(place.clone()).or_default();
            let manifests = image.manifests_in_order().chain(image.trimmed_descriptor());
            repository.manifests.extend(manifests.map(|manifest| (manifest.digest.clone(), manifest)));
            let tag = image.destination_tag();
            let earlier = repository.tags.entry(tag).or_default().insert(name.clone(), image.descriptor());
            if let Some(earlier) = earlier.filter(|earlier| at == 0 && earlier.digest != image.digest) {
                let (old, new) = (earlier.digest, &image.digest);
                self.notes.push(format!("{name}: {new} of {} is served, not {old}", source.name));
            }
            for referrer in image.referrers.iter().flatten() {
                if matches!(source.blobs.stat(&referrer.digest), Ok(Some(_))) {
                    let descriptor = referrer.descriptor();
                    if let Some(tag) = &referrer.tag {
                        let names = repository.tags.entry(tag.clone()).or_default();
                        names.insert(format!("{}:{tag}", image.name.name()), descriptor.clone());
                    }
                    repository.manifests.insert(referrer.digest.clone(), descriptor);
                }
            }
        }
    }

    /// The repositories that `name` means, the nearest first; `ns` is containerd's parameter for the
    /// source host, which may have other names. A client that names this server itself there asks for a
    /// plain name.
    pub(super) fn repositories(&self, name: &str, ns: Option<&str>) -> Vec<&Repository> {
        let Some(host) = ns.map(str::to_ascii_lowercase).filter(|ns| !self.own.contains(ns)) else {
            return self.repositories.get(name).into_iter().collect();
        };
        let host = match host.as_str() {
            "index.docker.io" | "registry-1.docker.io" => "docker.io",
            host => host,
        };
        let of = |host: &str| self.repositories.get(&by_host(host, name));
        of(host).into_iter().chain(other_hosts(host).filter_map(of)).collect()
    }

    /// The names of all repositories, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.repositories.keys()
    }
}

impl Repository {
    /// What `tag` means here.
    ///
    /// # Errors
    /// When source repositories with other content have become the same name.
    pub(super) fn tag(&self, tag: &str) -> Result<Option<&Descriptor>, Problem> {
        let Some(names) = self.tags.get(tag) else { return Ok(None) };
        let digests: BTreeSet<&Digest> = names.values().map(|descriptor| &descriptor.digest).collect();
        if digests.len() > 1 {
            let names: Vec<&str> = names.keys().map(String::as_str).collect();
            return Err(Problem::not_found(
                "MANIFEST_UNKNOWN",
                format!(
                    "this name has two meanings: {}; ask for one of them with its host in front",
                    names.join(" and ")
                ),
            ));
        }
        Ok(names.values().next())
    }

    /// The manifest with this digest.
    pub(super) fn manifest(&self, digest: &Digest) -> Option<&Descriptor> {
        self.manifests.get(digest)
    }

    /// All tags, sorted.
    pub(super) fn tags(&self) -> impl Iterator<Item = &String> {
        self.tags.keys()
    }

    /// What refers to `subject`. All manifests of the repository are read for it, once.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(super) fn referrers(
        &self,
        subject: &Digest,
        read: impl Fn(&Descriptor) -> Result<Option<Vec<u8>>, Problem>,
    ) -> Result<&[Referring], Problem> {
        if self.referrers.get().is_none() {
            let mut found: BTreeMap<Digest, Vec<Referring>> = BTreeMap::new();
            for descriptor in self.manifests.values() {
                let Some(bytes) = read(descriptor)? else { continue };
                if let Some(referrer) = referring(&bytes, descriptor) {
                    found.entry(referrer.subject.clone()).or_default().push(referrer);
                }
            }
            let _ = self.referrers.set(found);
        }
        Ok(self.referrers.get().and_then(|found| found.get(subject)).map_or(&[], Vec::as_slice))
    }
}

/// `quay.io/a/b`; a port as `host_5001`.
pub(super) fn by_host(host: &str, repository: &str) -> String {
    format!("{}/{repository}", host_component(host))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Memory, file, image};
    use super::*;

    fn source(lock: Lock) -> Source {
        Source {
            name: "b.tar.zst".into(),
            digest: None,
            lacks: vec![],
            lock,
            blobs: Arc::new(Memory::default()),
        }
    }

    fn lock(images: Vec<Image>) -> Lock {
        Lock { version: 1, images, ..Lock::default() }
    }

    fn catalogue(locks: Vec<Lock>) -> Catalogue {
        let sources: Vec<Source> = locks.into_iter().map(source).collect();
        Catalogue::new(&sources, &Mapping::to("127.0.0.1:5000".parse().unwrap()))
    }

    fn digest(catalogue: &Catalogue, name: &str, ns: Option<&str>, tag: &str) -> Option<Digest> {
        let repositories = catalogue.repositories(name, ns);
        let found = repositories.iter().find_map(|repository| repository.tag(tag).unwrap());
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
        let catalogue = catalogue(vec![lock(vec![nginx, local, pause, older])]);
        assert_eq!(digest(&catalogue, "library/nginx", None, "1.27"), of_nginx);
        assert_eq!(digest(&catalogue, "docker.io/library/nginx", None, "1.27"), of_nginx);
        assert_eq!(digest(&catalogue, "library/nginx", Some("docker.io"), "1.27"), of_nginx);
        assert_eq!(digest(&catalogue, "library/nginx", Some("registry-1.docker.io"), "1.27"), of_nginx);
        assert_eq!(digest(&catalogue, "library/nginx", Some("127.0.0.1:5000"), "1.27"), of_nginx);
        assert_eq!(digest(&catalogue, "library/nginx", Some("quay.io"), "1.27"), None);
        assert_eq!(digest(&catalogue, "localhost_5001/a/b", None, "1"), of_local);
        assert_eq!(digest(&catalogue, "a/b", Some("localhost:5001"), "1"), of_local);
        assert_eq!(digest(&catalogue, "pause", Some("k8s.gcr.io"), "3.10"), of_pause, "by its other host");
        assert_eq!(digest(&catalogue, "pause", Some("registry.k8s.io"), "3.1"), of_older);
    }

    #[test]
    fn one_name_with_two_meanings_is_answered_with_both() {
        let (a, b) = (image("quay.io/x/app:1", b"a"), image("ghcr.io/x/app:1", b"b"));
        let of_a = Some(a.digest.clone());
        let same = [image("quay.io/x/same:1", b"s"), image("ghcr.io/x/same:1", b"s")];
        let catalogue = catalogue(vec![lock([vec![a, b], same.to_vec()].concat())]);
        let both = catalogue.repositories("x/app", None)[0].tag("1").unwrap_err().message;
        assert!(both.contains("quay.io/x/app:1") && both.contains("ghcr.io/x/app:1"), "{both}");
        assert_eq!(digest(&catalogue, "quay.io/x/app", None, "1"), of_a);
        assert_eq!(digest(&catalogue, "x/app", Some("quay.io"), "1"), of_a);
        assert!(digest(&catalogue, "x/same", None, "1").is_some(), "equal content has one meaning");
        assert!(catalogue.notes.is_empty());
    }

    #[test]
    fn the_later_bundle_counts_and_a_note_says_so() {
        let (old, new) = (image("quay.io/x/app:1", b"old"), image("quay.io/x/app:1", b"new"));
        let (of_old, of_new) = (old.digest.clone(), new.digest.clone());
        let catalogue = catalogue(vec![lock(vec![old]), lock(vec![new])]);
        assert_eq!(digest(&catalogue, "x/app", None, "1"), Some(of_new));
        assert!(catalogue.repositories("x/app", None)[0].manifest(&of_old).is_some());
        assert_eq!(catalogue.notes.len(), 1, "{:?}", catalogue.notes);
    }

    #[test]
    fn files_are_artifacts_too() {
        let kubelet = file("https://dl.k8s.io/v1/kubelet", b"kubelet");
        let (place, tag) = (file_repository(&kubelet.name), file_tag(&kubelet.digest));
        let catalogue = catalogue(vec![Lock { version: 1, files: vec![kubelet], ..Lock::default() }]);
        assert!(digest(&catalogue, &place, None, &tag).is_some());
        assert_eq!(catalogue.bundles[0].items[0].place, format!("{place}:{tag}"));
        assert!(catalogue.bundles[0].items[0].incomplete, "the memory holds nothing");
    }
}
