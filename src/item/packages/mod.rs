//! OS packages: what a kind of machine installs from package repositories, with all that it needs, under the signatures of
//! the repositories. One item is one choice of packages over all sources of a machine.

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

pub(crate) use carried::Carried;
pub(crate) use carried_index::PackageIndexError;
pub(crate) use described::{DescribeError, PackageDescription};
pub(crate) use form::PackageForm;
pub use locked::{LockedPackage, PackageIndex, PackageSet, PackageSource};
pub(crate) use offered::{OfferedVersion, PinnedPackage, newer_packages};
pub(crate) use suites::SharedSuites;
pub(crate) use trimmed::{MadeFile, TrimError, trimmed_metadata};
pub use wish::OfferedIndex;
pub(crate) use wish::WantedPackages;
