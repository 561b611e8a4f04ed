//! What a source offers: versions of packages, with their relations to others.

use super::relation::VersionOperator;
use std::ops::Range;

/// A name of packages, in the order of its first mention.
pub(super) type NameId = u32;
/// A package: a name on an architecture. Its number is its position in [`Universe::packages`].
pub(super) type AptPackageId = u32;
/// A version of a package, by its position in [`Universe::versions`].
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

/// Which architecture a relation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchQualifier {
    /// That of the package that has it.
    Own,
    /// Any that the other allows.
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
    /// Whether another alternative of the same dependency follows.
    pub or: bool,
}

/// A version of a package, as an index lists it.
#[derive(Debug, Clone)]
pub struct AptVersion<'t> {
    /// The package, as a position in [`Universe::packages`](super::Universe::packages).
    pub package: AptPackageId,
    /// As the index has it.
    pub version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub arch: &'t str,
    /// The field `Multi-Arch`, which decides whose dependencies it may fulfil.
    pub multi_arch: MultiArch,
    /// From 1, required, to 5, extra, which is also that of a package without one.
    pub priority: u8,
    /// The field `Essential`: apt never removes such a package.
    pub is_essential: bool,
    /// `Protected`, or `Important` as it was called before.
    pub is_important: bool,
    /// The first source that has it; `None` for what is installed and no source has.
    pub source: Option<u16>,
    /// The path of its file, relative to the root of the repository.
    pub path: &'t str,
    /// The SHA-256 of the file in hex; empty where the index has none.
    pub sha256: &'t str,
    /// The SHA-512 of the file in hex; empty where the index has none.
    pub sha512: &'t str,
    /// The size of the file in bytes.
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
    /// Empty where it has none.
    pub version: &'t str,
    pub by: AptVersionId,
}

/// A package of the universe, with all its versions.
#[derive(Debug, Clone)]
pub struct AptPackage {
    pub name: NameId,
    pub arch: u8,
    /// The versions, the highest first.
    pub versions: Vec<AptVersionId>,
    /// The installed version, if any.
    pub current: Option<AptVersionId>,
}
