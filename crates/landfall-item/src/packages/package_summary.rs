//! A package of a set, for comparing it with other versions.

use super::locked::LockedPackageSet;
use landfall_content::BlobRead;
use landfall_model::{Digest, Limits};
use landfall_packages::{apt, yum};
use std::cmp::Ordering;
use std::io::{self, BufReader, Read};

/// A package of a locked set.
#[derive(Debug, Clone, Copy)]
pub struct PackageSummary<'a> {
    /// The name of the package.
    pub name: &'a str,
    /// The version as the repository writes it.
    pub version: &'a str,
    /// The architecture; `all` or `noarch` for a package of every architecture.
    pub arch: &'a str,
    /// The digest of the package file.
    pub digest: &'a Digest,
    /// The size of the package file in bytes.
    pub size: u64,
    /// Compares two versions as the package manager does.
    pub order: fn(&str, &str) -> Ordering,
    changelog: ReadChangelog,
}

/// Reads the first lines of the changelog in a package file; the second argument is the package's
/// name.
type ReadChangelog = fn(&mut dyn Read, &str) -> io::Result<Vec<String>>;

impl PackageSummary<'_> {
    /// The first lines of the package's changelog. Empty if `content` does not have the package
    /// file, or the package has no changelog.
    ///
    /// # Errors
    /// If the package file cannot be read.
    pub fn changelog(&self, content: &dyn BlobRead) -> io::Result<Vec<String>> {
        if content
            .stat(self.digest)
            .map_err(io::Error::other)?
            .is_none()
        {
            return Ok(Vec::new());
        }
        let file = content.open(self.digest, 0).map_err(io::Error::other)?;
        (self.changelog)(&mut BufReader::new(file), self.name)
    }
}

/// The packages of all sources of `set`.
pub(super) fn summaries(set: &LockedPackageSet) -> Vec<PackageSummary<'_>> {
    let (order, changelog): (fn(&str, &str) -> Ordering, ReadChangelog) = if set.is_yum() {
        (yum::compare_versions, |file, _| {
            yum::changelog(file, &Limits::default()).map_err(io::Error::other)
        })
    } else {
        (apt::compare_versions, apt::changelog)
    };
    let packages = set.sources.iter().flat_map(|source| &source.packages);
    packages
        .map(|package| PackageSummary {
            name: &package.name,
            version: &package.version,
            arch: &package.arch,
            digest: &package.digest,
            size: package.size,
            order,
            changelog,
        })
        .collect()
}
