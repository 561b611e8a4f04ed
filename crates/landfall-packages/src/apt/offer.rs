//! The packages of a source: their versions and the relations between them.

use super::relation::VersionOperator;
use std::ops::Range;

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
    /// `:any`: any architecture, if the other package is `Multi-Arch: allowed` or `foreign`.
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
