//! Repositories of RPM packages, as dnf and yum read them.

mod architecture;
mod base;
mod error;
mod filelists;
mod mirrors;
mod modules;
mod pin;
mod pool;
mod primary;
#[cfg(test)]
mod primary_tests;
mod relation;
mod repomd;
mod rich;
mod rpm_file;
mod solve;
mod strings;
mod version;
mod xml;

pub(crate) use architecture::Architectures;
pub(crate) use base::read_base;
pub(crate) use error::YumError;
pub(crate) use filelists::read_filelists;
pub(crate) use mirrors::read_mirrors;
pub(crate) use modules::Modules;
pub(crate) use pin::Pin;
pub(crate) use pool::{PackageId, Pool};
pub(crate) use primary::read_primary;
pub(crate) use repomd::{Index, Repomd};
pub(crate) use rpm_file::verify_package;
pub(crate) use solve::{Choice, Question, Refusal, choose, is_named};
pub(crate) use version::compare_evrs as compare_versions;
