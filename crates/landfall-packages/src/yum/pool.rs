//! The packages of all sources of a machine, and the packages that provide each capability.

use super::relation::{RpmRelation, VersionSense};
use super::version::Evr;
use landfall_model::Digest;
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

/// All known packages with their relations, stored compactly.
#[derive(Debug, Default)]
pub struct Pool {
    pub(super) strings: StringPool,
    packages: Vec<RpmPackage>,
    /// The relations of all packages. Those of one package are adjacent.
    relations: Vec<StoredRelation>,
    /// The files from the lists of all files, each with the package that contains it.
    more_files: Vec<(TextId, PackageId)>,
    /// For each text, the position of its first provider in `providers`; empty until
    /// [`Pool::index`].
    first: Vec<u32>,
    providers: Vec<Provider>,
}

/// The id of a package: its position in its [`Pool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageId(pub(super) u32);

/// The kinds of relations between RPM packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpmRelationKind {
    /// The capabilities that the package provides.
    Provides,
    /// The dependencies that must be installed too.
    Requires,
    /// The packages that cannot be installed together with this one.
    Conflicts,
    /// The packages that are removed when this one is installed.
    Obsoletes,
    /// Weak dependencies, installed if possible.
    Recommends,
    /// Packages that are preferred among alternatives; this does not cause an installation.
    Suggests,
    /// Reverse `Recommends`: if the related packages are installed, this one is too, if possible.
    Supplements,
    /// Reverse `Suggests`: if the related packages are installed, this one is preferred.
    Enhances,
    /// The files of the package that the primary index lists.
    Files,
}

impl RpmRelationKind {
    pub(super) const COUNT: usize = RpmRelationKind::Files as usize + 1;
}

/// A package of a source, or an installed package.
#[derive(Debug)]
pub struct RpmPackage {
    pub(super) name: TextId,
    pub(super) evr: TextId,
    pub(super) arch: TextId,
    /// The path relative to the repository, unchecked.
    pub(super) path: TextId,
    /// The digest of the package file; `None` if the index has no SHA-256 or SHA-512.
    pub digest: Option<Digest>,
    /// The size of the package file in bytes.
    pub size: u64,
    /// The number of the package's source; `None` if the package is installed.
    pub source: Option<u16>,
    /// The position of the first relation of each kind, and the end of the last kind.
    bounds: [u32; RpmRelationKind::COUNT + 1],
}

/// A package while a reader fills it in. The fields are those of [`RpmPackage`].
#[derive(Debug, Default)]
pub(super) struct NewPackage {
    pub(super) name: Option<TextId>,
    pub(super) evr: Option<TextId>,
    pub(super) arch: Option<TextId>,
    pub(super) path: Option<TextId>,
    pub(super) digest: Option<Digest>,
    pub(super) size: u64,
    pub(super) relations: [Vec<StoredRelation>; RpmRelationKind::COUNT],
}

/// A relation whose texts are in a [`StringPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredRelation {
    pub(super) name: TextId,
    pub(super) sense: VersionSense,
    pub(super) evr: TextId,
}

/// A package that provides a capability, in the versions that `sense` and `evr` allow.
#[derive(Debug, Clone, Copy)]
struct Provider {
    package: PackageId,
    sense: VersionSense,
    evr: TextId,
}

impl NewPackage {
    /// Prepares for the next package. The emptied lists keep their memory for it.
    pub(super) fn clear(&mut self) {
        let mut relations = std::mem::take(&mut self.relations);
        relations.iter_mut().for_each(Vec::clear);
        *self = NewPackage {
            relations,
            ..NewPackage::default()
        };
    }
}

impl Pool {
    /// Adds `new` as a package of `source`, and clears `new`. A package without a name, version or
    /// architecture is not added.
    pub(super) fn add(&mut self, new: &mut NewPackage, source: Option<u16>) {
        let mut bounds = [self.relations.len() as u32; RpmRelationKind::COUNT + 1];
        for (kind, relations) in new.relations.iter_mut().enumerate() {
            self.relations.append(relations);
            bounds[kind + 1] = self.relations.len() as u32;
        }
        // the relations of an incomplete package stay in the list, but nothing refers to them
        if let (Some(name), Some(evr), Some(arch)) =
            (new.name.take(), new.evr.take(), new.arch.take())
        {
            let path = new.path.take().unwrap_or(StringPool::EMPTY);
            let digest = new.digest.take();
            self.packages.push(RpmPackage {
                name,
                evr,
                arch,
                path,
                digest,
                size: new.size,
                source,
                bounds,
            });
        }
        new.clear();
    }

    /// Removes `packages`. The ids of the remaining packages change.
    pub(super) fn hide(&mut self, packages: &[PackageId]) {
        let hidden: std::collections::HashSet<PackageId> = packages.iter().copied().collect();
        // `retain` visits the packages in order, so the counter is their id
        let mut number = 0;
        self.packages.retain(|_| {
            number += 1;
            !hidden.contains(&PackageId(number - 1))
        });
    }

    /// Assigns all packages that were added so far to source 0.
    #[cfg(test)]
    pub(super) fn offer_all(&mut self) {
        self.packages
            .iter_mut()
            .for_each(|package| package.source = Some(0));
    }

    /// Copies the name, version, architecture and relations of `package` to `new`.
    pub(super) fn copy_relations(&self, package: PackageId, new: &mut NewPackage) {
        let from = self.package(package);
        (new.name, new.evr, new.arch) = (Some(from.name), Some(from.evr), Some(from.arch));
        for (kind, relations) in new.relations.iter_mut().enumerate() {
            let [start, end] = [from.bounds[kind], from.bounds[kind + 1]].map(|at| at as usize);
            relations.extend_from_slice(&self.relations[start..end]);
        }
    }

    /// Adds the listed files of `package` (those from a list of all files) to the package that was
    /// added last.
    pub(super) fn copy_listed_files(&mut self, package: PackageId) {
        let last = PackageId(self.packages.len() as u32 - 1);
        let files: Vec<(TextId, PackageId)> = self
            .more_files
            .iter()
            .filter(|(_, owner)| *owner == package)
            .map(|(path, _)| (*path, last))
            .collect();
        self.more_files.extend(files);
    }

    /// Adds the file `path` of `package` from a list of all files.
    pub(super) fn add_file(&mut self, package: PackageId, path: &str) {
        let path = self.strings.add(path);
        self.more_files.push((path, package));
    }

    /// Builds the index that [`providers`](Pool::providers) uses. Call it after adding packages.
    pub fn index(&mut self) {
        // a counting sort by name: one array for all providers instead of a list for each name
        let mut first = vec![0_u32; self.strings.count() + 1];
        self.each_provider(&mut |name, _| first[name.number() + 1] += 1);
        for number in 1..first.len() {
            first[number] += first[number - 1];
        }
        // `first[n]` is now the number of providers of all texts before `n`
        let mut next = first.clone();
        let none = Provider {
            package: PackageId(0),
            sense: VersionSense::ANY,
            evr: StringPool::EMPTY,
        };
        let mut providers = vec![none; first.last().map_or(0, |end| *end as usize)];
        self.each_provider(&mut |name, provider| {
            providers[next[name.number()] as usize] = provider;
            next[name.number()] += 1;
        });
        (self.first, self.providers) = (first, providers);
    }

    /// Calls `visit` for every capability and file that a package provides.
    fn each_provider(&self, visit: &mut dyn FnMut(TextId, Provider)) {
        for (number, package) in self.packages.iter().enumerate() {
            let id = PackageId(number as u32);
            for stored in [RpmRelationKind::Provides, RpmRelationKind::Files]
                .iter()
                .flat_map(|kind| self.stored(package, *kind))
            {
                visit(
                    stored.name,
                    Provider {
                        package: id,
                        sense: stored.sense,
                        evr: stored.evr,
                    },
                );
            }
        }
        for (path, package) in &self.more_files {
            visit(
                *path,
                Provider {
                    package: *package,
                    sense: VersionSense::ANY,
                    evr: StringPool::EMPTY,
                },
            );
        }
    }

    fn stored(&self, package: &RpmPackage, kind: RpmRelationKind) -> &[StoredRelation] {
        let [start, end] =
            [kind as usize, kind as usize + 1].map(|kind| package.bounds[kind] as usize);
        &self.relations[start..end]
    }

    /// Returns the number of packages.
    pub fn count(&self) -> usize {
        self.packages.len()
    }

    /// Returns the ids of all packages, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = PackageId> + use<> {
        (0..self.packages.len() as u32).map(PackageId)
    }

    /// Returns the package with this id.
    pub fn package(&self, id: PackageId) -> &RpmPackage {
        &self.packages[id.0 as usize]
    }

    /// Returns the relations of a package that have this kind.
    pub fn relations(
        &self,
        id: PackageId,
        kind: RpmRelationKind,
    ) -> impl Iterator<Item = RpmRelation<'_>> {
        self.stored(self.package(id), kind)
            .iter()
            .map(|stored| RpmRelation {
                name: self.strings.get(stored.name),
                sense: stored.sense,
                evr: self.strings.get(stored.evr),
            })
    }

    /// Returns the name of a package, without version and architecture.
    pub fn name(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).name)
    }

    /// Returns `[epoch:]version-release` of a package.
    pub fn evr(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).evr)
    }

    /// Returns the architecture of a package, such as `x86_64` or `noarch`.
    pub fn arch(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).arch)
    }

    /// Returns the path of a package file relative to its repository, unchecked.
    pub fn path(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).path)
    }

    /// Returns `name-evr.arch`, as RPM's tools print a package.
    pub fn nevra(&self, id: PackageId) -> String {
        format!("{}-{}.{}", self.name(id), self.evr(id), self.arch(id))
    }

    /// Returns the name of a package as `modules.yaml` writes it: `nevra`, always with an epoch.
    pub(super) fn full_name(&self, id: PackageId) -> String {
        let evr = self.evr(id);
        let epoch = if evr.contains(':') { "" } else { "0:" };
        format!("{}-{epoch}{evr}.{}", self.name(id), self.arch(id))
    }

    /// Compares the versions of two packages.
    pub fn compare(&self, a: PackageId, b: PackageId) -> Ordering {
        // equal texts have one id, so most comparisons parse nothing
        if self.package(a).evr == self.package(b).evr {
            return Ordering::Equal;
        }
        Evr::parse(self.evr(a)).compare(Evr::parse(self.evr(b)))
    }

    /// Returns the packages that provide any version of `name`, or contain it as a file, in the
    /// order of their ids.
    pub fn named(&self, name: &str) -> Vec<PackageId> {
        self.providers(RpmRelation::any(name))
    }

    /// Returns the number of entries that [`providers`](Pool::providers) visits for `name`.
    pub fn provided_count(&self, name: &str) -> usize {
        self.provided(name).len()
    }

    /// Returns the providers of `name`: each package with each version in which it provides `name`.
    fn provided(&self, name: &str) -> &[Provider] {
        let bounds = self
            .strings
            .find(name)
            .and_then(|name| self.first.get(name.number()..name.number() + 2));
        match bounds {
            Some([start, end]) => &self.providers[*start as usize..*end as usize],
            // the text is unknown, or was added after `index`
            _ => &[],
        }
    }

    /// Returns the packages that provide `relation`, in the order of their ids.
    pub fn providers(&self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        let mut found: Vec<PackageId> = self
            .provided(relation.name)
            .iter()
            .filter(|provider| {
                let provided = self.strings.get(provider.evr);
                provider.sense.meets(provided, relation.sense, relation.evr)
            })
            .map(|provider| provider.package)
            .collect();
        // a package may provide several versions of one name
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the packages whose own name and version match `relation`. RPM matches `Obsoletes`
    /// this way, not by the capabilities that packages provide.
    pub fn by_name(&self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        let mut found = self.providers(RpmRelation::any(relation.name));
        found.retain(|id| {
            self.name(*id) == relation.name
                && VersionSense::SAME.meets(self.evr(*id), relation.sense, relation.evr)
        });
        found
    }
}

// An interner for the texts of repositories: equal texts are stored once and have one id.

/// The id of a string in a [`StringPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextId(u32);

impl TextId {
    /// Returns the position of the text in the order in which texts were added.
    pub(super) fn number(self) -> usize {
        self.0 as usize
    }
}

/// The distinct texts of repositories, which repeat the same names and versions a million times.
#[derive(Debug)]
pub(super) struct StringPool {
    /// All texts, one after the other.
    bytes: String,
    /// The end of each text, as an offset in bytes.
    ends: Vec<usize>,
    /// A hash table with open addressing: the id of a text plus 1, or 0 for a free slot.
    table: Vec<u32>,
    /// Randomly seeded, because the texts are untrusted: a repository cannot make them collide.
    hasher: RandomState,
}

impl Default for StringPool {
    /// A pool that holds only the empty string.
    fn default() -> StringPool {
        let table = vec![0; 1 << 12];
        // the empty string is id 0: relations without a version use it
        let mut strings = StringPool {
            bytes: String::new(),
            ends: Vec::new(),
            table,
            hasher: RandomState::new(),
        };
        strings.add("");
        strings
    }
}

impl StringPool {
    pub(super) const EMPTY: TextId = TextId(0);

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, text: TextId) -> &str {
        let start = text
            .number()
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[text.number()]]
    }

    /// Returns the id of `text`, if it was added before.
    pub(super) fn find(&self, text: &str) -> Option<TextId> {
        match self.table[self.slot(text)] {
            0 => None,
            found => Some(TextId(found - 1)),
        }
    }

    /// Returns the id of `text`, which is added if it is new.
    pub(super) fn add(&mut self, text: &str) -> TextId {
        // at most half full, so that searches for a free slot stay short
        if (self.ends.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let slot = self.slot(text);
        if self.table[slot] == 0 {
            self.bytes.push_str(text);
            self.ends.push(self.bytes.len());
            self.table[slot] = self.ends.len() as u32;
        }
        TextId(self.table[slot] - 1)
    }

    /// Returns the slot of `text` in the table, or the free slot for it.
    fn slot(&self, text: &str) -> usize {
        // the length of the table is a power of two
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while self.table[slot] != 0 && self.get(TextId(self.table[slot] - 1)) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        // slots depend on the length of the table, so every text gets a new one
        self.table = vec![0; self.table.len() * 2];
        let mask = self.table.len() - 1;
        for number in 0..self.ends.len() {
            let mut slot = self.hasher.hash_one(self.get(TextId(number as u32))) as usize & mask;
            while self.table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_added_after_the_index_has_no_providers() {
        let mut pool = Pool::default();
        let (name, evr) = (pool.strings.add("app"), pool.strings.add("1-1"));
        let mut new = NewPackage {
            name: Some(name),
            evr: Some(evr),
            arch: Some(StringPool::EMPTY),
            ..NewPackage::default()
        };
        let own = StoredRelation {
            name,
            sense: VersionSense::SAME,
            evr,
        };
        new.relations[RpmRelationKind::Provides as usize].push(own);
        pool.add(&mut new, Some(0));
        pool.index();
        for late in ["late", "later"] {
            pool.strings.add(late);
        }
        let count = |name: &str| pool.named(name).len();
        assert_eq!(
            ["app", "1-1", "late", "later", "none"].map(count),
            [1, 0, 0, 0, 0]
        );
    }

    #[test]
    fn equal_texts_have_one_id() {
        let mut strings = StringPool::default();
        let texts: Vec<String> = (0..10_000)
            .map(|n| format!("libfoo.so.{n}()(64bit)"))
            .collect();
        let first: Vec<TextId> = texts.iter().map(|text| strings.add(text)).collect();
        let again: Vec<TextId> = texts.iter().map(|text| strings.add(text)).collect();
        assert_eq!(first, again);
        assert_eq!(strings.count(), 10_001);
        assert!(
            texts
                .iter()
                .zip(&first)
                .all(|(text, id)| strings.get(*id) == text)
        );
        assert_eq!(strings.find("libfoo.so.77()(64bit)"), Some(first[77]));
        assert_eq!(
            (strings.find("no"), strings.find("")),
            (None, Some(StringPool::EMPTY))
        );
    }
}
