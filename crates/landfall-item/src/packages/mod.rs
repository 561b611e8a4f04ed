//! OS packages: what a kind of machine installs from package repositories, with all that it needs,
//! under the signatures of the repositories. One item is one choice of packages over all sources of
//! a machine.

mod apt;
mod carried;
mod carried_index;
mod consistent;
mod described;
mod fetch;
mod fields;
mod form;
mod kind;
mod locked;
#[cfg(test)]
mod locked_tests;
mod offered;
mod package_faults;
mod parts;
mod snapshot;
mod suites;
mod trimmed;
mod wish;
mod written;
mod written_yum;
mod yum;
mod yum_mirrors;
mod yum_source;

pub use carried::Carried;
pub use carried_index::PackageIndexError;
pub use described::{DescribeError, PackageDescription};
pub use form::PackageForm;
pub use locked::{LockedPackage, PackageIndex, PackageSet, PackageSource};
pub use offered::{OfferedVersion, PinnedPackage, newer_packages};
pub(crate) use suites::SharedSuites;
pub use trimmed::{MadeFile, TrimError, trimmed_metadata};
pub use wish::OfferedIndex;
pub use wish::WantedPackages;
