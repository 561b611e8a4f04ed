//! A package of a set, as it is compared with others of its name.

use super::locked::{LockedPackage, PackageSet};
use crate::model::Digest;
use crate::packages::{apt, yum};
use std::cmp::Ordering;

/// A package of a set.
#[derive(Debug, Clone, Copy)]
pub struct PackageForm<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its architecture, or `all`.
    pub arch: &'a str,
    /// Its digest.
    pub digest: &'a Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The order of versions where it comes from.
    pub order: fn(&str, &str) -> Ordering,
}

/// The packages of `set`, of all its sources.
pub(super) fn forms(set: &PackageSet) -> Vec<PackageForm<'_>> {
    let order = if set.is_yum() { yum::compare_versions } else { apt::compare_versions };
    let packages = set.sources.iter().flat_map(|source| &source.packages);
    packages
        .map(|LockedPackage { digest, size, name, version, arch, .. }| PackageForm {
            name,
            version,
            arch,
            digest,
            size: *size,
            order,
        })
        .collect()
}
