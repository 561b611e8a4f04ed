//! RPM repositories: indexes, versions, and package selection as dnf does it.

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

pub use architecture::Architectures;
pub use base::{is_plain_list, read_base};
pub use error::YumError;
pub use labels::PackageLabels;
pub use metadata::{AvailablePackages, MetadataError, PackedIndex, SourceMetadata};
pub use mirrors::{MirrorList, read_mirrors};
pub use pin::RpmPin;
pub use pool::{PackageId, Pool};
pub use repomd::{Repomd, RepomdIndex};
pub use rpm_file::{changelog, verify_package};
pub use solve::{SelectionRequest, UnsolvableRequest, YumSelection, choose, is_named};
pub use trimmed::{TrimmedPrimary, trimmed_repomd};
pub use version::{Evr, compare_evrs as compare_versions};

/// Parses `bytes` as each kind of index that changes a pool. For fuzzing.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let mut pool = Pool::default();
    let _ = primary::read_primary(bytes, 0, &["x86_64", "noarch"], &mut pool);
    pool.index();
    let wanted = filelists::related_paths(&pool);
    let _ = filelists::read_filelists(bytes, 0, &wanted, &mut pool);
    let mut modules = modules::Modules::default();
    if modules.read(&String::from_utf8_lossy(bytes)).is_ok() {
        modules.hide(&mut pool);
    }
}
