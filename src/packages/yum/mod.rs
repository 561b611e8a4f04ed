//! Repositories of RPM packages, as dnf and yum read them.

mod error;
mod filelists;
mod mirrors;
mod pool;
mod primary;
mod relation;
mod repomd;
mod rich;
mod strings;
mod version;
mod xml;

pub(crate) use error::YumError;
pub(crate) use filelists::read_filelists;
pub(crate) use mirrors::{Mirrors, read_mirrors};
pub(crate) use pool::{Kind, PackageId, Pool};
pub(crate) use primary::read_primary;
pub(crate) use repomd::{Index, Repomd, checked_path};
