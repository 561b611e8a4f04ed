//! The versions that an index lists for some packages, without their dependencies.

use super::paragraph::paragraphs;
use std::collections::BTreeSet;

/// A version of a package in an index, without its relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedVersion<'t> {
    /// The name of the package.
    pub name: &'t str,
    /// The version as the index writes it.
    pub version: &'t str,
    /// `all`, or the name of the package's architecture.
    pub arch: &'t str,
}

/// Returns the versions that `index` lists for the packages `names`.
pub fn listed_versions<'t>(index: &'t str, names: &BTreeSet<&str>) -> Vec<IndexedVersion<'t>> {
    let mut found = Vec::new();
    for paragraph in paragraphs(index) {
        let Some(name) = paragraph
            .field("Package")
            .filter(|name| names.contains(name))
        else {
            continue;
        };
        if let (Some(version), Some(arch)) =
            (paragraph.field("Version"), paragraph.field("Architecture"))
        {
            found.push(IndexedVersion {
                name,
                version,
                arch,
            });
        }
    }
    found
}
