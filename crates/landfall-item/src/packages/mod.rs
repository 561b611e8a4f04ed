//! OS packages with their dependencies and the signed metadata of their repositories. One item
//! contains the packages that one kind of machine installs, from all its sources.

mod apt;
mod apt_entry;
mod availability;
mod chosen_packages;
mod description;
mod fetch;
mod fields;
mod kind;
mod locked;
#[cfg(test)]
mod locked_tests;
mod newer_versions;
mod resolvable;
mod suites;
mod trimmed;
#[cfg(test)]
mod trimmed_tests;
mod yum;
mod yum_entry;
mod yum_source;

pub use self::availability::PackageAvailability;
pub(crate) use self::chosen_packages::package_faults;
pub use self::description::PackageDescription;
pub(crate) use self::fields::PackageEntry;
pub(crate) use self::kind::{entry, repository};
pub use self::locked::{
    LockedPackage, LockedPackageSet, PackageIndex, PackageSource, PackageSummary,
};
pub use self::newer_versions::{NewerVersions, OfferedVersion, PinnedPackage, newer_packages};
pub use self::resolvable::{OfferedIndex, PackageSetRequest};
pub(crate) use self::suites::SharedSuites;
pub use self::trimmed::{GeneratedFile, trimmed_metadata};
