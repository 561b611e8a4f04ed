//! A package of a set, as it is compared with others of its name.

use super::locked::{LockedPackage, LockedPackageSet};
use landfall_content::BlobRead;
use landfall_model::{Digest, Limits};
use landfall_packages::{apt, yum};
use std::cmp::Ordering;
use std::io::{self, BufReader, Read};

/// A package of a set.
#[derive(Debug, Clone, Copy)]
pub struct PackageSummary<'a> {
    /// The name of the package.
    pub name: &'a str,
    /// The version as the repository writes it.
    pub version: &'a str,
    /// The architecture, or `all` for a package of every architecture.
    pub arch: &'a str,
    /// The digest of the package file.
    pub digest: &'a Digest,
    /// The size of the package file in bytes.
    pub size: u64,
    /// The order of versions where it comes from.
    pub order: fn(&str, &str) -> Ordering,
    changelog: ReadChangelog,
}

/// Reads the first lines of a changelog from the file of a package of this name.
type ReadChangelog = fn(&mut dyn Read, &str) -> io::Result<Vec<String>>;

impl PackageSummary<'_> {
    /// The first lines of what it says of its version; none where `content` lacks it, or it has no
    /// changelog.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn changelog(&self, content: &dyn BlobRead) -> io::Result<Vec<String>> {
        match content.stat(self.digest).map_err(io::Error::other)? {
            None => Ok(Vec::new()),
            Some(_) => {
                let file = content.open(self.digest, 0).map_err(io::Error::other)?;
                (self.changelog)(&mut BufReader::new(file), self.name)
            }
        }
    }
}

/// The packages of `set`, of all its sources.
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
        .map(
            |LockedPackage {
                 digest,
                 size,
                 name,
                 version,
                 arch,
                 ..
             }| PackageSummary {
                name,
                version,
                arch,
                digest,
                size: *size,
                order,
                changelog,
            },
        )
        .collect()
}
