//! Repositories of RPM packages, as dnf and yum read them.

mod architecture;
mod base;
mod error;
mod filelists;
mod labels;
mod metadata;
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
mod trimmed;
mod version;
mod xml;

pub(crate) use architecture::Architectures;
pub(crate) use base::{is_plain_list, read_base};
pub(crate) use error::YumError;
pub(crate) use labels::PackageLabels;
pub(crate) use metadata::{Metadata, MetadataError, Offered, PackedIndex};
pub(crate) use mirrors::{Mirrors, read_mirrors};
pub(crate) use pin::Pin;
pub(crate) use pool::{PackageId, Pool};
pub(crate) use repomd::{Index, Repomd};
pub(crate) use rpm_file::{changelog, verify_package};
pub(crate) use solve::{Choice, Question, choose, is_named};
pub(crate) use trimmed::{TrimmedIndex, trimmed_repomd};
pub(crate) use version::compare_evrs as compare_versions;
