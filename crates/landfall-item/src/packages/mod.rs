//! OS packages with their dependencies and the signed metadata of their repositories. One item
//! contains the packages that one kind of machine installs, from all its sources.

mod apt;
mod apt_entry;
mod availability;
mod carried_index;
mod chosen_packages;
mod consistent;
mod description;
mod fetch;
mod fields;
mod kind;
mod locked;
#[cfg(test)]
mod locked_tests;
mod manifest_entry;
mod newer_versions;
mod package_faults;
mod package_summary;
mod parts;
mod release_indexes;
mod request;
mod resolvable;
mod snapshot;
mod suites;
mod trimmed;
#[cfg(test)]
mod trimmed_tests;
mod yum;
mod yum_entry;
mod yum_mirrors;
mod yum_source;

pub use availability::PackageAvailability;
pub use carried_index::PackageIndexError;
pub use description::{DescribeError, PackageDescription};
pub use locked::{LockedPackage, LockedPackageSet, PackageIndex, PackageSource};
pub(crate) use manifest_entry::PackageEntry;
pub use newer_versions::{NewerVersions, OfferedVersion, PinnedPackage, newer_packages};
pub use package_summary::PackageSummary;
pub use request::OfferedIndex;
pub use request::PackageSetRequest;
pub(crate) use suites::SharedSuites;
pub use trimmed::{GeneratedFile, TrimError, trimmed_metadata};
