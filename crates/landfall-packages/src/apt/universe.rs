//! All packages that the sources of a machine offer, and those that are installed on it.
//!
//! Each index is read once; names get ids, and all other text is borrowed from the index. Ids
//! follow the order in which apt reads the names, because apt falls back on that order between
//! equal providers.

use super::fields::{KINDS, PackageFields, paragraphs};
use super::relation::{VersionOperator, compare, relations};
use std::collections::HashMap;
use std::ops::Range;

/// The packages that the sources of a machine offer, and those that it has installed.
#[derive(Debug, Clone, Default)]
pub struct Universe<'t> {
    /// The architectures, the native one first.
    pub architectures: Vec<String>,
    /// All packages, indexed by [`AptPackageId`](AptPackageId).
    pub packages: Vec<AptPackage>,
    /// The versions of all packages, indexed by [`AptVersionId`].
    pub versions: Vec<AptVersion<'t>>,
    /// The pin priority of each source (`apt_preferences(5)`).
    pub pins: Vec<i16>,
    names: Vec<&'t str>,
    by_name: HashMap<&'t str, NameId>,
    /// The versions of all packages, by package and version.
    by_version: HashMap<(AptPackageId, &'t str), AptVersionId>,
    /// For each name, its packages: one per architecture.
    of_name: Vec<Vec<AptPackageId>>,
    /// For each name, the positions of its entries in `provides`.
    providers: Vec<Vec<u32>>,
    /// The relations of all versions; those of one version are adjacent.
    relations: Vec<AptRelation<'t>>,
    /// The virtual packages of all versions; those of one version are adjacent.
    provides: Vec<ProvidedName<'t>>,
    /// The additional sources of versions that several sources list.
    also: HashMap<AptVersionId, Vec<u16>>,
}

impl<'t> Universe<'t> {
    /// Returns a universe without packages. The first architecture is the native one.
    pub fn new(architectures: &[String]) -> Universe<'t> {
        Universe {
            architectures: architectures.to_vec(),
            ..Universe::default()
        }
    }

    /// Adds a source with the pin priority `pin` (`apt_preferences(5)`), and returns its number.
    pub fn add_source(&mut self, pin: i16) -> u16 {
        self.pins.push(pin);
        self.pins.len() as u16 - 1
    }

    /// Adds the packages of an index to the source with this number.
    pub fn add_index(&mut self, source: u16, index: &'t str) {
        let first = self.versions.len();
        for paragraph in paragraphs(index) {
            self.add_version(Some(source), &PackageFields::parse(paragraph));
        }
        self.sort_versions(first);
    }

    /// Adds the packages that are installed on a node, from its dpkg status file.
    pub fn add_installed(&mut self, status: &'t str) {
        let first = self.versions.len();
        for paragraph in paragraphs(status) {
            let fields = PackageFields::parse(paragraph);
            // `Status` is three words, of which the last is the state
            let state = fields.status.rsplit(' ').next().unwrap_or_default();
            if matches!(state, "not-installed" | "config-files" | "half-installed") {
                continue;
            }
            if let Some(version) = self.add_version(None, &fields) {
                self.set_current(version);
                let package = self.versions[version as usize].package;
                self.packages[package as usize].is_held = fields.status.starts_with("hold ");
            }
        }
        self.sort_versions(first);
    }

    /// Sorts the versions of each package that has a version whose id is `first` or higher: the
    /// highest version first, and of equal versions such as `1.1` and `1.01` the first added first.
    fn sort_versions(&mut self, first: usize) {
        let all = &self.versions;
        let mut grown: Vec<AptPackageId> = all[first..].iter().map(|new| new.package).collect();
        grown.sort_unstable();
        grown.dedup();
        for package in grown {
            let versions = &mut self.packages[package as usize].versions;
            versions.sort_unstable_by(|one, other| {
                let [a, b] = [one, other].map(|version| all[*version as usize].version);
                compare(b, a).then(one.cmp(other))
            });
        }
    }

    /// Marks `version` as the installed version of its package.
    pub fn set_current(&mut self, version: AptVersionId) {
        let package = self.versions[version as usize].package;
        self.packages[package as usize].current = Some(version);
    }

    /// Marks the version `version` of the package `name` as installed, if a source lists it.
    pub fn set_installed(&mut self, name: &str, version: &str) {
        let Some(package) = self.find(name, None) else {
            return;
        };
        let mut versions = self.packages[package as usize].versions.iter().copied();
        if let Some(found) = versions.find(|at| self.versions[*at as usize].version == version) {
            self.set_current(found);
        }
    }

    /// Marks all packages as not installed.
    pub fn forget_installed(&mut self) {
        for known in &mut self.packages {
            known.current = None;
            known.is_held = false;
        }
    }

    /// Adds a version of a package, without sorting the versions of the package. Returns `None` if
    /// the machine does not have the architecture, or if the fields lack the name or the version.
    fn add_version(
        &mut self,
        source: Option<u16>,
        fields: &PackageFields<'t>,
    ) -> Option<AptVersionId> {
        if fields.package.is_empty() || fields.version.is_empty() {
            return None;
        }
        // apt treats packages of the architecture `all` as packages of the native one
        let arch = match fields.arch {
            "all" => 0,
            arch => self.architectures.iter().position(|known| known == arch)? as u8,
        };
        let name = self.name_id(fields.package);
        let package = self.package_id(name, arch);
        // the first source that lists a version determines its fields
        if let Some(known) = self.by_version.get(&(package, fields.version)) {
            self.also.entry(*known).or_default().extend(source);
            return Some(*known);
        }
        let version = self.versions.len() as AptVersionId;
        let first = self.relations.len() as u32;
        let first_provide = self.provides.len() as u32;
        for (text, kind) in fields.relations.iter().zip(KINDS) {
            for one in relations(text) {
                // fields that are otherwise ignored also give ids to the names in them: see `KINDS`
                let name = self.name_id(one.name);
                let arch = match one.arch {
                    None => ArchQualifier::Own,
                    Some("any") => ArchQualifier::Any,
                    Some("native") => ArchQualifier::This(0),
                    // `u8::MAX` matches no package: the machine does not have the architecture
                    Some(arch) => ArchQualifier::This(
                        self.architectures
                            .iter()
                            .position(|known| known == arch)
                            .map_or(u8::MAX, |at| at as u8),
                    ),
                };
                if let Some(kind) = kind {
                    self.relations.push(AptRelation {
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
        for one in relations(fields.provides)
            // Debian Policy 7.5: `Provides` allows no other operator
            .filter(|one| matches!(one.op, VersionOperator::Any | VersionOperator::Equal))
        {
            let name = self.name_id(one.name);
            self.providers[name as usize].push(self.provides.len() as u32);
            self.provides.push(ProvidedName {
                name,
                version: one.version,
                by: version,
            });
        }
        self.versions.push(AptVersion {
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
                "required" => 1,
                "important" => 2,
                "standard" => 3,
                "optional" => 4,
                _ => 5,
            },
            is_essential: fields.essential == "yes",
            is_important: fields.important == "yes",
            source,
            // flat repositories write `./app.deb`
            path: fields.path.strip_prefix("./").unwrap_or(fields.path),
            sha256: fields.sha256,
            sha512: fields.sha512,
            size: fields.size.parse().unwrap_or(0),
            built_from: fields.built_from(),
            relations: first..self.relations.len() as u32,
            provides: first_provide..self.provides.len() as u32,
        });
        self.packages[package as usize].versions.push(version);
        self.by_version.insert((package, fields.version), version);
        Some(version)
    }

    /// Returns the id of a name, which is added if it is new.
    fn name_id(&mut self, text: &'t str) -> NameId {
        if let Some(name) = self.by_name.get(text) {
            return *name;
        }
        let name = self.names.len() as NameId;
        self.names.push(text);
        self.of_name.push(Vec::new());
        self.providers.push(Vec::new());
        self.by_name.insert(text, name);
        name
    }

    /// Returns the package of a name and an architecture, which is added if it is new.
    fn package_id(&mut self, name: NameId, arch: u8) -> AptPackageId {
        let known = &self.of_name[name as usize];
        let found = known
            .iter()
            .find(|package| self.packages[**package as usize].arch == arch);
        if let Some(package) = found {
            return *package;
        }
        let package = self.packages.len() as AptPackageId;
        self.packages.push(AptPackage {
            name,
            arch,
            versions: Vec::new(),
            current: None,
            is_held: false,
        });
        self.of_name[name as usize].push(package);
        package
    }

    /// Returns the package `name` of the architecture `arch`, or if `arch` is `None`, of the first
    /// architecture that has it.
    pub fn find(&self, name: &str, arch: Option<&str>) -> Option<AptPackageId> {
        let all = self.of_name.get(*self.by_name.get(name)? as usize)?;
        all.iter()
            .filter(|package| {
                let own = self.packages[**package as usize].arch;
                arch.is_none_or(|arch| {
                    self.architectures
                        .get(own as usize)
                        .is_some_and(|known| known == arch)
                })
            })
            .min_by_key(|package| self.packages[**package as usize].arch)
            .copied()
    }

    /// Whether any version of a package is essential or protected. apt then protects all of them.
    pub fn is_vital(&self, package: AptPackageId) -> bool {
        self.is_essential(package) || self.is_important(package)
    }

    /// Whether any version of a package is essential.
    pub fn is_essential(&self, package: AptPackageId) -> bool {
        let mut versions = self.packages[package as usize].versions.iter();
        versions.any(|version| self.versions[*version as usize].is_essential)
    }

    /// Whether any version of a package is protected.
    pub fn is_important(&self, package: AptPackageId) -> bool {
        let mut versions = self.packages[package as usize].versions.iter();
        versions.any(|version| self.versions[*version as usize].is_important)
    }

    /// Whether any version of a package is `Multi-Arch: allowed`, so that it satisfies `name:any`.
    pub fn allows_any(&self, package: AptPackageId) -> bool {
        let mut versions = self.packages[package as usize].versions.iter();
        versions.any(|version| self.versions[*version as usize].multi_arch == MultiArch::Allowed)
    }

    /// Returns the details of a version.
    pub fn offer_of(&self, version: AptVersionId) -> &AptVersion<'t> {
        &self.versions[version as usize]
    }

    /// Returns the sources that list a version, in the order in which they were added.
    pub fn sources_of(&self, version: AptVersionId) -> impl Iterator<Item = u16> {
        let also = self.also.get(&version).into_iter().flatten().copied();
        self.versions[version as usize]
            .source
            .into_iter()
            .chain(also)
    }

    /// Returns the relations of a version. Alternatives are adjacent ([`AptRelation::or`]).
    pub fn relations_of(&self, version: AptVersionId) -> &[AptRelation<'t>] {
        let range = &self.versions[version as usize].relations;
        &self.relations[range.start as usize..range.end as usize]
    }

    /// Returns the virtual packages that a version provides.
    pub fn provides_of(&self, version: AptVersionId) -> &[ProvidedName<'t>] {
        let range = &self.versions[version as usize].provides;
        &self.provides[range.start as usize..range.end as usize]
    }

    /// Returns the packages of a name, one per architecture.
    pub fn packages_of(&self, name: NameId) -> &[AptPackageId] {
        &self.of_name[name as usize]
    }

    /// Returns the versions that provide `name` as a virtual package.
    pub fn providers_of(&self, name: NameId) -> impl Iterator<Item = ProvidedName<'t>> {
        self.providers[name as usize]
            .iter()
            .map(|at| self.provides[*at as usize])
    }

    /// Returns the packages that provide `name`.
    pub fn providers_named(&self, name: &str) -> Vec<AptPackageId> {
        let name = self.by_name.get(name);
        let all = name.into_iter().flat_map(|name| self.providers_of(*name));
        all.map(|provide| self.versions[provide.by as usize].package)
            .collect()
    }

    /// Returns the name of the package of a version.
    pub(super) fn name_of(&self, version: AptVersionId) -> NameId {
        self.packages[self.versions[version as usize].package as usize].name
    }

    /// Returns the text of a name.
    pub fn text(&self, name: NameId) -> &'t str {
        self.names[name as usize]
    }

    /// Whether a package with this name, or one that provides it, is in a source or installed.
    pub fn is_offered(&self, name: NameId) -> bool {
        !self.of_name[name as usize].is_empty() || !self.providers[name as usize].is_empty()
    }
}

// The packages of a source: their versions and the relations between them.

/// The id of a package name. Ids follow the order in which the indexes first mention the names.
pub(super) type NameId = u32;
/// The id of a package (a name and an architecture): its position in
/// [`Universe::packages`](super::Universe::packages).
pub(super) type AptPackageId = u32;
/// The id of a version of a package: its position in
/// [`Universe::versions`](super::Universe::versions).
pub type AptVersionId = u32;

/// The values of the field `Multi-Arch`, as wiki.debian.org/Multiarch defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultiArch {
    No,
    Same,
    Foreign,
    Allowed,
}

/// The field that a relation was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    PreDepends,
    Depends,
    Conflicts,
    Breaks,
    Recommends,
    Suggests,
}

/// The architecture that satisfies a relation: the qualifier after the colon of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchQualifier {
    /// No qualifier: the architecture of the package that has the relation.
    Own,
    /// `:any`: any architecture, if the other package is `Multi-Arch: allowed`.
    Any,
    /// The architecture with this position in `Universe::architectures`.
    This(u8),
}

/// One alternative of a relation.
#[derive(Debug, Clone, Copy)]
pub struct AptRelation<'t> {
    pub version: &'t str,
    pub name: NameId,
    pub op: VersionOperator,
    pub arch: ArchQualifier,
    pub kind: RelationKind,
    /// Whether another alternative of the same relation follows.
    pub or: bool,
}

/// A version of a package, as an index lists it.
#[derive(Debug, Clone)]
pub struct AptVersion<'t> {
    /// The package, as a position in [`Universe::packages`](super::Universe::packages).
    pub package: AptPackageId,
    /// The version as the index writes it.
    pub version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub arch: &'t str,
    /// The field `Multi-Arch`: the architectures for which the version satisfies dependencies.
    pub multi_arch: MultiArch,
    /// The field `Priority`, from 1 (required) to 5 (extra). Without the field it is 5.
    pub priority: u8,
    /// The field `Essential`: apt never removes such a package.
    pub is_essential: bool,
    /// The field `Protected`, which was called `Important` before.
    pub is_important: bool,
    /// The first source that lists the version; `None` if it is installed and no source lists it.
    pub source: Option<u16>,
    /// The path of the package file, relative to the root of the repository.
    pub path: &'t str,
    /// The SHA-256 of the file in hex; empty if the index has none.
    pub sha256: &'t str,
    /// The SHA-512 of the file in hex; empty if the index has none.
    pub sha512: &'t str,
    /// The size of the file in bytes; 0 if the index has none.
    pub size: u64,
    /// The name and version of the source package that it was built from.
    pub(super) built_from: (&'t str, &'t str),
    pub(super) relations: Range<u32>,
    pub(super) provides: Range<u32>,
}

/// A virtual package that a version provides.
#[derive(Debug, Clone, Copy)]
pub struct ProvidedName<'t> {
    pub name: NameId,
    /// The version in `Provides: name (= version)`; empty if it has none.
    pub version: &'t str,
    /// The version that provides the name.
    pub by: AptVersionId,
}

/// A package of the universe, with all its versions.
#[derive(Debug, Clone)]
pub struct AptPackage {
    pub name: NameId,
    pub arch: u8,
    /// The versions, at least one, the highest first.
    pub versions: Vec<AptVersionId>,
    /// The installed version, if any.
    pub current: Option<AptVersionId>,
    /// Whether the installed version is on hold (`apt-mark hold`).
    pub is_held: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn versions<'t>(universe: &Universe<'t>) -> Vec<&'t str> {
        let package = universe.find("a", None).unwrap();
        let versions = universe.packages[package as usize].versions.iter();
        versions
            .map(|version| universe.versions[*version as usize].version)
            .collect()
    }

    #[test]
    fn versions_are_sorted_and_equal_ones_are_kept_in_the_order_of_apt() {
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let paragraph =
            |version: &str| format!("Package: a\nArchitecture: amd64\nVersion: {version}\n\n");
        let first: String = ["1.0", "3", "2", "1.00", "2"].map(paragraph).concat();
        let second: String = ["2.5", "1.000", "2"].map(paragraph).concat();
        let status = format!(
            "Status: install ok installed\n{}",
            paragraph("2.1").trim_start()
        );
        for index in [&first, &second] {
            let source = universe.add_source(500);
            universe.add_index(source, index);
        }
        universe.add_installed(&status);
        assert_eq!(
            versions(&universe),
            ["3", "2.5", "2.1", "2", "1.0", "1.00", "1.000"]
        );
        let package = &universe.packages[universe.find("a", None).unwrap() as usize];
        assert_eq!(universe.offer_of(package.current.unwrap()).version, "2.1");
        let twice = package.versions[3];
        assert_eq!(universe.sources_of(twice).collect::<Vec<_>>(), [0, 0, 1]);
    }

    /// Comparing each version with all others would take minutes.
    #[test]
    fn a_package_may_have_many_versions() {
        let mut index = String::new();
        for version in 0..200_000 {
            let _ = write!(
                index,
                "Package: a\nArchitecture: amd64\nVersion: {version}\n\n"
            );
        }
        let mut universe = Universe::new(&["amd64".to_owned()]);
        let source = universe.add_source(500);
        universe.add_index(source, &index);
        let versions = versions(&universe);
        assert_eq!((versions.len(), versions[0]), (200_000, "199999"));
    }
}
