//! The versions of some packages in an index, without all that they need.

use super::paragraph::paragraphs;
use std::collections::BTreeSet;

/// A version of a package in an index, without its relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedVersion<'t> {
    /// The name of the package.
    pub name: &'t str,
    /// As the index has it.
    pub version: &'t str,
    /// `all`, or the name of its architecture.
    pub arch: &'t str,
}

/// Returns the versions that `index` lists of the packages `names`.
pub fn offered<'t>(index: &'t str, names: &BTreeSet<&str>) -> Vec<IndexedVersion<'t>> {
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
