//! RPM repositories: indexes, versions, and package selection as dnf does it.

mod groups;
mod metadata;
mod modules;
#[cfg(test)]
mod modules_tests;
mod modules_yaml;
mod pool;
mod primary;
#[cfg(test)]
mod primary_tests;
mod relation;
mod repomd;
mod requests;
mod rpm_file;
mod solve;
mod trimmed;
mod version;
mod xml;

pub use self::metadata::{
    AvailablePackages, PackedIndex, SourceMetadata, is_plain_list, read_base, unpacked_limit,
    unsupported_compression,
};
pub use self::pool::{PackageId, Pool};
pub use self::primary::PackageLabels;
pub use self::repomd::{MirrorList, Repomd, RepomdIndex, is_group_kind, read_mirrors};
pub use self::requests::PackageRequest;
pub use self::rpm_file::{changelog, verify_package};
pub use self::solve::request_words::RpmPin;
pub use self::solve::{SelectionRequest, UnsolvableRequest, YumSelection, choose, is_named};
pub use self::trimmed::{TrimmedPrimary, trimmed_repomd};
pub use self::version::{Architectures, Evr, compare_evrs as compare_versions};

/// Parses `bytes` as each kind of index that changes a pool. For fuzzing.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(bytes: &[u8]) {
    let mut pool = Pool::default();
    let _ = primary::read_primary(bytes, 0, &["x86_64", "noarch"], &mut pool);
    pool.index();
    let wanted = primary::related_paths(&pool);
    let _ = primary::read_filelists(bytes, 0, &wanted, &mut pool);
    let machine = Architectures::of("x86_64");
    let mut modules = modules::Modules::default();
    if modules
        .read(&String::from_utf8_lossy(bytes), &machine)
        .is_ok()
        && let Ok(active) = modules.activate(&[])
    {
        modules.hide(&active, &[], &mut pool);
    }
    let mut groups = groups::Groups::default();
    if groups.read(bytes).is_ok() {
        let _ = groups.packages("core");
    }
}
