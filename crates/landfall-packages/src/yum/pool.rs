//! The packages of all sources of a machine, and who provides what.

use super::relation::{RpmRelation, VersionSense};
use super::strings::{StringPool, TextId};
use super::version::Evr;
use landfall_model::Digest;
use std::cmp::Ordering;

/// All known packages with their relations, stored compactly.
#[derive(Debug)]
pub struct Pool {
    strings: StringPool,
    packages: Vec<RpmPackage>,
    relations: Vec<StoredPackage>,
    /// Files that a list apart from the packages names.
    more_files: Vec<(TextId, PackageId)>,
    /// For each text, where its providers begin in `providers`; empty until [`Pool::index`].
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
    /// The packages that cannot be installed together with it.
    Conflicts,
    /// The packages that are removed when this one is installed.
    Obsoletes,
    /// Weak dependencies, installed if possible.
    Recommends,
    /// Packages that are preferred among alternatives, never installed for this alone.
    Suggests,
    /// Reverse `Recommends`: this package is installed with them if possible.
    Supplements,
    /// Reverse `Suggests`: this package is preferred if they are installed.
    Enhances,
    /// Its files, those that the primary index names.
    Files,
}

impl RpmRelationKind {
    pub(super) const COUNT: usize = RpmRelationKind::Files as usize + 1;
}

/// What a repository, or a list of what is installed, says of a package.
#[derive(Debug)]
pub struct RpmPackage {
    pub(super) name: TextId,
    pub(super) evr: TextId,
    pub(super) arch: TextId,
    /// Path relative to the repository, as the index has it.
    pub(super) path: TextId,
    /// The digest of its file, where the index has one that can be believed.
    pub(super) digest: Option<Digest>,
    /// The size of its file in bytes.
    pub(super) size: u64,
    /// Which source it is of; `None` where it is installed.
    pub(super) source: Option<u16>,
    /// Where the relations of each kind begin, and at last where they end.
    bounds: [u32; RpmRelationKind::COUNT + 1],
}

impl RpmPackage {
    /// Which source it is of; `None` where it is installed.
    pub fn source(&self) -> Option<u16> {
        self.source
    }

    /// The digest of its file, where the index has one that can be believed.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The size of its file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// A package that a reader fills in.
#[derive(Debug, Default)]
pub(super) struct NewPackage {
    pub(super) name: Option<TextId>,
    pub(super) evr: Option<TextId>,
    pub(super) arch: Option<TextId>,
    pub(super) path: Option<TextId>,
    pub(super) digest: Option<Digest>,
    pub(super) size: u64,
    pub(super) relations: [Vec<StoredPackage>; RpmRelationKind::COUNT],
}

/// A relation in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredPackage {
    pub(super) name: TextId,
    pub(super) sense: VersionSense,
    pub(super) evr: TextId,
}

#[derive(Debug, Clone, Copy)]
struct Provider {
    package: PackageId,
    sense: VersionSense,
    evr: TextId,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            strings: StringPool::new(),
            packages: Vec::new(),
            relations: Vec::new(),
            more_files: Vec::new(),
            first: Vec::new(),
            providers: Vec::new(),
        }
    }
}

impl Pool {
    /// The texts, for readers that fill it.
    pub(super) fn strings(&mut self) -> &mut StringPool {
        &mut self.strings
    }

    /// Takes `new`, which is of `source`, and empties it. One without a name or version is no
    /// package.
    pub(super) fn take(&mut self, new: &mut NewPackage, source: Option<u16>) {
        let mut bounds = [self.relations.len() as u32; RpmRelationKind::COUNT + 1];
        for (kind, relations) in new.relations.iter_mut().enumerate() {
            self.relations.append(relations);
            bounds[kind + 1] = self.relations.len() as u32;
        }
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
        *new = NewPackage {
            relations: std::mem::take(&mut new.relations),
            ..NewPackage::default()
        };
    }

    /// Takes `packages`, out of what can be chosen. The numbers of the others change.
    pub(super) fn hide(&mut self, packages: &[PackageId]) {
        let hidden: std::collections::HashSet<PackageId> = packages.iter().copied().collect();
        let mut number = 0;
        self.packages.retain(|_| {
            number += 1;
            !hidden.contains(&PackageId(number - 1))
        });
    }

    /// Makes all packages so far those of a source.
    #[cfg(test)]
    pub(super) fn offer_all(&mut self) {
        self.packages
            .iter_mut()
            .for_each(|package| package.source = Some(0));
    }

    /// Makes `new` say of itself what `package` says.
    pub(super) fn copy_relations(&self, package: PackageId, new: &mut NewPackage) {
        let from = self.package(package);
        (new.name, new.evr, new.arch) = (Some(from.name), Some(from.evr), Some(from.arch));
        for (kind, relations) in new.relations.iter_mut().enumerate() {
            let [start, end] = [from.bounds[kind], from.bounds[kind + 1]].map(|at| at as usize);
            relations.extend_from_slice(&self.relations[start..end]);
        }
    }

    /// Gives the last package the files that a list of files names for `package`.
    pub(super) fn copy_listed_files(&mut self, package: PackageId) {
        let last = PackageId(self.packages.len() as u32 - 1);
        let files = self
            .more_files
            .iter()
            .filter(|(_, has_it)| *has_it == package);
        let files: Vec<(TextId, PackageId)> = files.map(|(path, _)| (*path, last)).collect();
        self.more_files.extend(files);
    }

    /// Notes that `package` has the file `path`, as a list of files says.
    pub(super) fn add_file(&mut self, package: PackageId, path: &str) {
        let path = self.strings.add(path);
        self.more_files.push((path, package));
    }

    /// Makes [`providers`](Pool::providers) true of all that was added.
    pub fn index(&mut self) {
        let mut first = vec![0_u32; self.strings.count() + 1];
        let each = |this: &Pool, visit: &mut dyn FnMut(TextId, Provider)| {
            for (number, package) in this.packages.iter().enumerate() {
                let id = PackageId(number as u32);
                for stored in [RpmRelationKind::Provides, RpmRelationKind::Files]
                    .iter()
                    .flat_map(|kind| this.stored(package, *kind))
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
            for (path, package) in &this.more_files {
                visit(
                    *path,
                    Provider {
                        package: *package,
                        sense: VersionSense::ANY,
                        evr: StringPool::EMPTY,
                    },
                );
            }
        };
        each(self, &mut |name, _| first[name.number() + 1] += 1);
        for number in 1..first.len() {
            first[number] += first[number - 1];
        }
        let mut next = first.clone();
        let none = Provider {
            package: PackageId(0),
            sense: VersionSense::ANY,
            evr: StringPool::EMPTY,
        };
        let mut providers = vec![none; first.last().map_or(0, |end| *end as usize)];
        each(self, &mut |name, provider| {
            providers[next[name.number()] as usize] = provider;
            next[name.number()] += 1;
        });
        (self.first, self.providers) = (first, providers);
    }

    fn stored(&self, package: &RpmPackage, kind: RpmRelationKind) -> &[StoredPackage] {
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

    /// What is known of a package.
    pub fn package(&self, id: PackageId) -> &RpmPackage {
        &self.packages[id.0 as usize]
    }

    /// Returns the relations of a package of one kind.
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

    /// Its epoch, version and release as a text.
    pub fn evr(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).evr)
    }

    /// Returns the architecture of a package, such as `x86_64` or `noarch`.
    pub fn arch(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).arch)
    }

    /// Its path relative to its repository, unchecked.
    pub fn path(&self, id: PackageId) -> &str {
        self.strings.get(self.package(id).path)
    }

    /// `name-evr.arch`, as RPM's tools show it.
    pub fn nevra(&self, id: PackageId) -> String {
        format!("{}-{}.{}", self.name(id), self.evr(id), self.arch(id))
    }

    /// How the versions of two packages compare.
    pub fn compare(&self, a: PackageId, b: PackageId) -> Ordering {
        if self.package(a).evr == self.package(b).evr {
            return Ordering::Equal;
        }
        Evr::parse(self.evr(a)).compare(Evr::parse(self.evr(b)))
    }

    /// Packages that provide some version of `name`, or have it as a file: each once, in the order
    /// of the pool.
    pub fn named(&self, name: &str) -> Vec<PackageId> {
        self.providers(RpmRelation::any(name))
    }

    /// Packages that provide `relation`: each once, in the order of the pool.
    pub fn providers(&self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        let Some(name) = self.strings.find(relation.name) else {
            return Vec::new();
        };
        let at = |number: usize| self.first.get(number).map_or(0, |at| *at as usize);
        let all = &self.providers[at(name.number())..at(name.number() + 1)];
        let meets = |provider: &&Provider| {
            provider
                .sense
                .meets(self.strings.get(provider.evr), relation.sense, relation.evr)
        };
        let mut found: Vec<PackageId> = all
            .iter()
            .filter(meets)
            .map(|provider| provider.package)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Packages whose own name and version are `relation`. RPM matches what a package obsoletes so.
    pub fn by_name(&self, relation: RpmRelation<'_>) -> Vec<PackageId> {
        let mut found = self.providers(RpmRelation::any(relation.name));
        found.retain(|id| {
            self.name(*id) == relation.name
                && VersionSense::SAME.meets(self.evr(*id), relation.sense, relation.evr)
        });
        found
    }
}
