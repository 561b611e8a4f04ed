//! What a source offers: versions of packages, with their relations to others.

use super::relation::Op;
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
    Suggests,
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
#[derive(Debug, Clone)]
pub(crate) struct Offer<'t> {
    pub(crate) package: Package,
    pub(crate) version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub(crate) arch: &'t str,
    pub(crate) multi_arch: MultiArch,
    /// From 1, required, to 5, extra, which is also that of a package without one.
    pub(crate) priority: u8,
    pub(crate) is_essential: bool,
    /// `Protected`, or `Important` as it was called before.
    pub(crate) is_important: bool,
    /// The first source that has it; `None` for what is installed and no source has.
    pub(crate) source: Option<u16>,
    pub(crate) path: &'t str,
    pub(crate) sha256: &'t str,
    pub(crate) sha512: &'t str,
    pub(crate) size: u64,
    /// The name and version of the source package that it was built from.
    pub(super) built_from: (&'t str, &'t str),
    pub(super) relations: Range<u32>,
    pub(super) provides: Range<u32>,
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
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: Name,
    pub(crate) arch: u8,
    /// The versions, the highest first.
    pub(crate) versions: Vec<Version>,
    /// What is installed.
    pub(crate) current: Option<Version>,
}
