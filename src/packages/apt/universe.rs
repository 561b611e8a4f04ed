//! All packages that the sources of a machine offer, and those that it has.
//!
//! Each index is read once; names are numbered, and all other text is borrowed from the index. Names get their numbers in
//! the order in which apt meets them, as apt falls back on that order between providers that are alike.

use super::paragraph::{Paragraph, paragraphs};
use super::relation::{Op, relations};
use super::version::compare;
use std::collections::HashMap;
use std::ops::Range;

/// A name of packages, in the order of its first mention.
pub(crate) type Name = u32;
/// A package: a name on an architecture. Its number is its position in [`Universe::packages`].
pub(crate) type Package = u32;
/// A version of a package, by its position in [`Universe::versions`].
pub(crate) type Version = u32;

/// `Multi-Arch` (wiki.debian.org/Multiarch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MultiArch {
    No,
    Same,
    Foreign,
    Allowed,
}

/// What a relation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelationKind {
    PreDepends,
    Depends,
    Conflicts,
    Breaks,
    Recommends,
}

/// Which architecture a relation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// That of the package that has it.
    Own,
    /// Any that the other allows.
    Any,
    /// This one.
    This(u8),
}

/// One alternative of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relation<'t> {
    pub(crate) version: &'t str,
    pub(crate) name: Name,
    pub(crate) op: Op,
    pub(crate) arch: Wanted,
    pub(crate) kind: RelationKind,
    /// Whether an alternative follows.
    pub(crate) or: bool,
}

/// A version of a package.
#[derive(Debug)]
pub(crate) struct Offer<'t> {
    pub(crate) package: Package,
    pub(crate) version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub(crate) arch: &'t str,
    pub(crate) multi_arch: MultiArch,
    /// From 1, required, to 5; 0 where it has none.
    pub(crate) priority: u8,
    pub(crate) is_essential: bool,
    /// `Protected`, or `Important` as it was called before.
    pub(crate) is_important: bool,
    /// Which source has it; `None` for what is installed and no source has.
    pub(crate) source: Option<u16>,
    pub(crate) path: &'t str,
    pub(crate) sha256: &'t str,
    pub(crate) sha512: &'t str,
    pub(crate) size: u64,
    /// The name and version of the source package that it was built from.
    built_from: (&'t str, &'t str),
    relations: Range<u32>,
    provides: Range<u32>,
}

/// A name that a version stands for too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Provide<'t> {
    pub(crate) name: Name,
    /// Empty where it has none.
    pub(crate) version: &'t str,
    pub(crate) by: Version,
}

/// A package of the universe.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: Name,
    pub(crate) arch: u8,
    /// The versions, the highest first.
    pub(crate) versions: Vec<Version>,
    /// What is installed.
    pub(crate) current: Option<Version>,
}

/// All that the sources of a machine offer, and what it has.
#[derive(Debug, Default)]
pub(crate) struct Universe<'t> {
    /// The architectures, the native one first.
    pub(crate) architectures: Vec<String>,
    pub(crate) packages: Vec<Known>,
    pub(crate) versions: Vec<Offer<'t>>,
    /// The preference of each source.
    pub(crate) pins: Vec<i16>,
    names: Vec<&'t str>,
    by_name: HashMap<&'t str, Name>,
    /// The packages of a name, by architecture.
    of_name: Vec<Vec<Package>>,
    /// Who provides a name.
    providers: Vec<Vec<u32>>,
    relations: Vec<Relation<'t>>,
    provides: Vec<Provide<'t>>,
}

/// The fields of a paragraph that count.
#[derive(Default)]
struct Fields<'t> {
    package: &'t str,
    version: &'t str,
    arch: &'t str,
    multi_arch: &'t str,
    priority: &'t str,
    essential: &'t str,
    important: &'t str,
    /// In the order in which apt reads them.
    relations: [&'t str; 8],
    provides: &'t str,
    path: &'t str,
    sha256: &'t str,
    sha512: &'t str,
    size: &'t str,
    status: &'t str,
    built_from: &'t str,
}

impl<'t> Fields<'t> {
    fn of(paragraph: Paragraph<'t>) -> Fields<'t> {
        let mut fields = Fields::default();
        for (name, value) in paragraph.fields() {
            let place = match name {
                "Package" => &mut fields.package,
                "Version" => &mut fields.version,
                "Architecture" => &mut fields.arch,
                "Multi-Arch" => &mut fields.multi_arch,
                "Priority" => &mut fields.priority,
                "Essential" => &mut fields.essential,
                "Important" | "Protected" => &mut fields.important,
                "Pre-Depends" => &mut fields.relations[0],
                "Depends" => &mut fields.relations[1],
                "Conflicts" => &mut fields.relations[2],
                "Breaks" => &mut fields.relations[3],
                "Recommends" => &mut fields.relations[4],
                "Suggests" => &mut fields.relations[5],
                "Replaces" => &mut fields.relations[6],
                "Enhances" => &mut fields.relations[7],
                "Provides" => &mut fields.provides,
                "Filename" => &mut fields.path,
                "SHA256" => &mut fields.sha256,
                "SHA512" => &mut fields.sha512,
                "Size" => &mut fields.size,
                "Status" => &mut fields.status,
                "Source" => &mut fields.built_from,
                _ => continue,
            };
            *place = value;
        }
        fields
    }
}

const KINDS: [Option<RelationKind>; 8] = [
    Some(RelationKind::PreDepends),
    Some(RelationKind::Depends),
    Some(RelationKind::Conflicts),
    Some(RelationKind::Breaks),
    Some(RelationKind::Recommends),
    None,
    None,
    None,
];

/// `Source` is `name`, `name (version)`, or absent where both are those of the package.
fn built_from<'t>(fields: &Fields<'t>) -> (&'t str, &'t str) {
    match fields.built_from.split_once('(') {
        Some((name, version)) => (name.trim(), version.trim_end_matches(')').trim()),
        None if fields.built_from.is_empty() => (fields.package, fields.version),
        None => (fields.built_from, fields.version),
    }
}

impl<'t> Universe<'t> {
    /// A universe without packages. The first architecture is the native one.
    pub(crate) fn new(architectures: &[String]) -> Universe<'t> {
        Universe { architectures: architectures.to_vec(), ..Universe::default() }
    }

    /// A source whose packages have the preference `pin`; its number.
    pub(crate) fn source(&mut self, pin: i16) -> u16 {
        self.pins.push(pin);
        self.pins.len() as u16 - 1
    }

    /// Adds the packages of an index.
    pub(crate) fn add(&mut self, source: u16, index: &'t str) {
        for paragraph in paragraphs(index) {
            self.offer(Some(source), &Fields::of(paragraph));
        }
    }

    /// Adds what a node has, by its dpkg status file.
    pub(crate) fn install(&mut self, status: &'t str) {
        for paragraph in paragraphs(status) {
            let fields = Fields::of(paragraph);
            let state = fields.status.rsplit(' ').next().unwrap_or_default();
            if matches!(state, "not-installed" | "config-files" | "half-installed") {
                continue;
            }
            if let Some(version) = self.offer(None, &fields) {
                self.set_current(version);
            }
        }
    }

    /// Makes `version` what is installed of its package.
    pub(crate) fn set_current(&mut self, version: Version) {
        let package = self.versions[version as usize].package;
        self.packages[package as usize].current = Some(version);
    }

    /// Makes the version `version` of the native package `name` what is installed, where there is one.
    pub(crate) fn set_installed(&mut self, name: &str, version: &str) {
        let Some(package) = self.find(name, None) else { return };
        let versions = self.packages[package as usize].versions.iter().copied();
        if let Some(found) = versions.into_iter().find(|at| self.versions[*at as usize].version == version) {
            self.set_current(found);
        }
    }

    /// Makes it a machine with nothing.
    pub(crate) fn forget_installed(&mut self) {
        self.packages.iter_mut().for_each(|known| known.current = None);
    }

    fn offer(&mut self, source: Option<u16>, fields: &Fields<'t>) -> Option<Version> {
        if fields.package.is_empty() || fields.version.is_empty() {
            return None;
        }
        let arch = match fields.arch {
            "all" => 0,
            arch => self.architectures.iter().position(|known| known == arch)? as u8,
        };
        let name = self.name(fields.package);
        let package = self.package_of(name, arch);
        let same = |version: &&Version| self.versions[**version as usize].version == fields.version;
        if let Some(known) = self.packages[package as usize].versions.iter().find(same) {
            return Some(*known);
        }
        let version = self.versions.len() as Version;
        let (first, first_provide) = (self.relations.len() as u32, self.provides.len() as u32);
        for (text, kind) in fields.relations.iter().zip(KINDS) {
            for one in relations(text) {
                let name = self.name(one.name);
                let arch = match one.arch {
                    None => Wanted::Own,
                    Some("any") => Wanted::Any,
                    Some("native") => Wanted::This(0),
                    // of an architecture that the machine does not have
                    Some(arch) => Wanted::This(
                        self.architectures
                            .iter()
                            .position(|known| known == arch)
                            .map_or(u8::MAX, |at| at as u8),
                    ),
                };
                if let Some(kind) = kind {
                    self.relations.push(Relation {
                        version: one.version,
                        name,
                        op: one.op,
                        arch,
                        kind,
                        or: one.or,
                    });
                }
            }
        }
        for one in relations(fields.provides).filter(|one| matches!(one.op, Op::Any | Op::Equal)) {
            let name = self.name(one.name);
            self.providers[name as usize].push(self.provides.len() as u32);
            self.provides.push(Provide { name, version: one.version, by: version });
        }
        self.versions.push(Offer {
            package,
            version: fields.version,
            arch: fields.arch,
            multi_arch: match fields.multi_arch {
                "same" => MultiArch::Same,
                "foreign" => MultiArch::Foreign,
                "allowed" => MultiArch::Allowed,
                _ => MultiArch::No,
            },
            priority: match fields.priority {
                "" => 0,
                "required" => 1,
                "important" => 2,
                "standard" => 3,
                "optional" => 4,
                _ => 5,
            },
            is_essential: fields.essential == "yes",
            is_important: fields.important == "yes",
            source,
            path: fields.path.strip_prefix("./").unwrap_or(fields.path),
            sha256: fields.sha256,
            sha512: fields.sha512,
            size: fields.size.parse().unwrap_or(0),
            built_from: built_from(fields),
            relations: first..self.relations.len() as u32,
            provides: first_provide..self.provides.len() as u32,
        });
        let known = &self.packages[package as usize].versions;
        let text = |at: &Version| self.versions[*at as usize].version;
        let at = known.partition_point(|one| compare(text(one), fields.version).is_gt());
        self.packages[package as usize].versions.insert(at, version);
        Some(version)
    }

    fn name(&mut self, text: &'t str) -> Name {
        if let Some(name) = self.by_name.get(text) {
            return *name;
        }
        let name = self.names.len() as Name;
        self.names.push(text);
        self.of_name.push(Vec::new());
        self.providers.push(Vec::new());
        self.by_name.insert(text, name);
        name
    }

    fn package_of(&mut self, name: Name, arch: u8) -> Package {
        let known = &self.of_name[name as usize];
        let found = known.iter().find(|package| self.packages[**package as usize].arch == arch);
        if let Some(package) = found {
            return *package;
        }
        let package = self.packages.len() as Package;
        self.packages.push(Known { name, arch, versions: Vec::new(), current: None });
        self.of_name[name as usize].push(package);
        package
    }

    /// The package `name` of the native architecture, or of `arch`.
    pub(crate) fn find(&self, name: &str, arch: Option<&str>) -> Option<Package> {
        let all = self.of_name.get(*self.by_name.get(name)? as usize)?;
        let wanted = |package: &&Package| {
            let has = self.packages[**package as usize].arch;
            arch.is_none_or(|arch| self.architectures.get(has as usize).is_some_and(|known| known == arch))
        };
        all.iter().filter(wanted).min_by_key(|package| self.packages[**package as usize].arch).copied()
    }

    /// A version.
    pub(crate) fn offer_of(&self, version: Version) -> &Offer<'t> {
        &self.versions[version as usize]
    }

    /// The relations of a version, those with alternatives one after the other.
    pub(crate) fn relations_of(&self, version: Version) -> &[Relation<'t>] {
        let range = &self.versions[version as usize].relations;
        &self.relations[range.start as usize..range.end as usize]
    }

    /// What a version provides.
    pub(crate) fn provides_of(&self, version: Version) -> &[Provide<'t>] {
        let range = &self.versions[version as usize].provides;
        &self.provides[range.start as usize..range.end as usize]
    }

    /// The packages of a name, of all architectures.
    pub(crate) fn packages_of(&self, name: Name) -> &[Package] {
        &self.of_name[name as usize]
    }

    /// Who provides a name.
    pub(crate) fn providers_of(&self, name: Name) -> impl Iterator<Item = Provide<'t>> {
        self.providers[name as usize].iter().map(|at| self.provides[*at as usize])
    }

    /// The packages that provide `name`.
    pub(crate) fn providers_named(&self, name: &str) -> Vec<Package> {
        let name = self.by_name.get(name);
        let all = name.into_iter().flat_map(|name| self.providers_of(*name));
        all.map(|provide| self.versions[provide.by as usize].package).collect()
    }

    /// The versions that were built from the same source as `version`, in the order of their packages.
    pub(crate) fn siblings_of(&self, version: Version) -> impl Iterator<Item = Version> {
        let from = self.versions[version as usize].built_from;
        let installed = self.packages.iter().filter(|known| known.current.is_some());
        installed
            .flat_map(|known| known.versions.iter().copied())
            .filter(move |other| self.versions[*other as usize].built_from == from)
    }

    /// A name as it is written.
    pub(crate) fn text(&self, name: Name) -> &'t str {
        self.names[name as usize]
    }

    /// Whether some source has a version of this name, or one that provides it.
    pub(crate) fn has(&self, name: Name) -> bool {
        let has_version = |package: &Package| !self.packages[*package as usize].versions.is_empty();
        self.of_name[name as usize].iter().any(has_version) || !self.providers[name as usize].is_empty()
    }

    /// Whether `version` fulfils `relation` of a package of the architecture `own`.
    pub(crate) fn fulfils(&self, relation: &Relation<'_>, own: u8, version: Version) -> bool {
        let offer = &self.versions[version as usize];
        let known = &self.packages[offer.package as usize];
        if !Self::fits_architecture(relation, own, offer, known.arch) {
            return false;
        }
        let allows = |version: &str| relation.op.allows(version, relation.version);
        if known.name == relation.name && allows(offer.version) {
            return true;
        }
        self.provides_of(version).iter().any(|provide| {
            provide.name == relation.name
                && (relation.op == Op::Any || (!provide.version.is_empty() && allows(provide.version)))
        })
    }

    fn fits_architecture(relation: &Relation<'_>, own: u8, offer: &Offer<'_>, arch: u8) -> bool {
        if matches!(relation.kind, RelationKind::Conflicts | RelationKind::Breaks) {
            return !matches!(relation.arch, Wanted::This(wanted) if wanted != arch);
        }
        match relation.arch {
            Wanted::Own => arch == own || offer.multi_arch == MultiArch::Foreign,
            Wanted::Any => matches!(offer.multi_arch, MultiArch::Allowed | MultiArch::Foreign),
            Wanted::This(wanted) => arch == wanted,
        }
    }

    /// The version that apt would take of `package`: of those with the highest preference the highest version.
    pub(crate) fn candidate(&self, package: Package) -> Option<Version> {
        let known = &self.packages[package as usize];
        let pin = |version: &Version| {
            let of_source = self.versions[*version as usize].source.map(|source| self.pins[source as usize]);
            // what is installed counts as 100
            let of_current = (known.current == Some(*version)).then_some(100);
            of_source.max(of_current).unwrap_or(0)
        };
        let best = known.versions.iter().copied().map(|version| (pin(&version), version));
        // apt goes back to a lower version only for preferences of more than 1000
        let above = |version: &Version| {
            known.current.is_none_or(|current| {
                compare(self.versions[*version as usize].version, self.versions[current as usize].version)
                    .is_ge()
            })
        };
        let best = best.filter(|(pin, version)| *pin > 0 && above(version));
        best.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, version)| version)
    }
}
