//! A version in a manifest that `landfall update` may change, and where upstream lists its newer
//! versions.

use super::kept_versions::KeptVersions;
use super::version_location::VersionLocation;
use crate::{PackageSetRequest, ProviderAddress};
use landfall_model::document::{ChartVersions, SourceLocation, VersionsFrom};
use landfall_model::report::EntryKind;
use landfall_model::{ImageRef, MinimumAge, UpdatePolicy};
use std::ops::Range;
use std::path::PathBuf;

/// A version with an update policy in a manifest.
#[derive(Debug, Clone)]
pub struct UpdatableVersion {
    /// The name in messages: the variable, or the item without its version.
    pub name: String,
    /// The kind of item that has the version, or `Variable`, for messages.
    pub kind: EntryKind,
    /// The manifest that contains the version.
    pub file: PathBuf,
    /// The position of the version in the manifest. With `keep`, the position of the variable's
    /// list, or of the item's first version.
    pub at: SourceLocation,
    /// The update policy: what the version may move to.
    pub policy: UpdatePolicy,
    /// The update policy as it is written.
    pub written: String,
    /// How long this project must have known a version before it is used.
    pub min_age: Option<MinimumAge>,
    /// The version that the manifest contains. With `keep`, all versions, separated by commas.
    pub current: String,
    /// The other values of the same variable; empty with `keep`.
    pub others: Vec<String>,
    /// The versions of a variable or item with `keep`; `None` without `keep`.
    pub kept: Option<KeptVersions>,
    /// Where the newer versions are listed, or why landfall cannot find them.
    pub versions: Result<VersionSource, String>,
    pub(super) key: VersionLocation,
    /// The parsed YAML scalar that contains the version; empty for a variable with `keep`.
    pub(super) text: String,
    /// The bytes of `text` that are the version.
    pub(super) version: Range<usize>,
}

/// Where `landfall update` finds the versions of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// The tags of a repository.
    Tags {
        /// An image of the repository.
        image: ImageRef,
        /// The text before the version in a tag.
        before: String,
        /// The text after the version in a tag.
        after: String,
    },
    /// The index of an HTTP repository of charts.
    Chart(ChartVersions),
    /// The tags of the git repository at this URL.
    GitTags(String),
    /// The versions that a provider registry lists.
    Provider(ProviderAddress),
    /// The package repositories of a machine.
    Packages(Box<PackageVersions>),
    /// The `from:` of a variable: a text, a JSON document or the index of a chart repository.
    Document(VersionsFrom),
}

impl VersionSource {
    /// All tags of the repository of `image`.
    pub(super) fn tags(image: ImageRef) -> VersionSource {
        VersionSource::Tags {
            image,
            before: String::new(),
            after: String::new(),
        }
    }

    /// The package repositories of `machine`. The package is filled in for each pinned version.
    pub(super) fn machine(machine: PackageSetRequest) -> VersionSource {
        VersionSource::Packages(Box::new(PackageVersions {
            machine,
            package: String::new(),
            before: String::new(),
            after: String::new(),
        }))
    }
}

/// A package whose versions are listed in the repositories of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVersions {
    /// The machine whose repositories have the package.
    pub machine: PackageSetRequest,
    /// The name of the package, with the architecture if it is written.
    pub package: String,
    /// The text in the package's version before the part that moves.
    pub before: String,
    /// The text in the package's version after the part that moves.
    pub after: String,
}

impl UpdatableVersion {
    /// Whether both versions are in the same entry of a manifest. The packages of a machine may
    /// have to be updated together.
    pub fn is_beside(&self, other: &UpdatableVersion) -> bool {
        match (&self.key, &other.key) {
            (
                VersionLocation::Entry(section, index, _),
                VersionLocation::Entry(others, other_index, _),
            ) => (section, index, &self.file) == (others, other_index, &other.file),
            _ => false,
        }
    }
}

/// Parses a policy. `None` if it is invalid or never changes the version.
pub(super) fn moving_policy(text: &str) -> Option<UpdatePolicy> {
    text.parse()
        .ok()
        .filter(UpdatePolicy::allows_other_versions)
}
