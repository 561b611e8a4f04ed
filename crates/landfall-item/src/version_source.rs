//! Where `landfall update` finds the versions of an item.

use super::packages::PackageSetRequest;
use landfall_model::ImageRef;
use landfall_model::document::{ChartVersions, VersionsFrom};

/// Where `landfall update` finds the versions of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// The tags of a repository. The two texts are what a tag contains before and after the version.
    Tags(ImageRef, String, String),
    /// The index of an HTTP repository of charts.
    Chart(ChartVersions),
    /// The package repositories of a machine.
    Packages(Box<PackageVersions>),
    /// The `from:` of a variable: a text, a JSON document or the index of a chart repository.
    Document(VersionsFrom),
}

impl VersionSource {
    /// All tags of the repository of `image`.
    pub(super) fn tags(image: &ImageRef) -> VersionSource {
        VersionSource::Tags(image.clone(), String::new(), String::new())
    }

    /// The package repositories of `machine`. The package is filled in for each pinned version.
    pub(super) fn machine(machine: PackageSetRequest) -> VersionSource {
        VersionSource::Packages(Box::new(PackageVersions {
            machine,
            package: String::new(),
            around: Default::default(),
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
    /// The text before and after the part of the package's version that moves.
    pub around: (String, String),
}
