//! A provider of OpenTofu and Terraform: one version, with a package for each platform.
//!
//! The artifact has the layout of OpenTofu's provider mirrors in OCI registries, so OpenTofu
//! installs it from the registry to which `push` delivers it. `lock` downloads each new package,
//! because the `h1:` hash is computed from the files in the archive.

mod address;
mod kind;
mod lock_file;
mod manifest_entry;
mod mirror;
mod package_hash;
mod registry;
mod resolvable;
mod resolve;
#[cfg(any(test, fuzzing, feature = "testkit"))]
mod testing;
mod zip_directory;

pub use self::address::{ProviderAddress, ProviderName, ProviderPlatform};
pub use self::kind::{LockedProvider, LockedProviderPackage};
pub(crate) use self::kind::{entry, own_repository, tag};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::lock_file::fuzz as read_provider_lock_file;
pub(crate) use self::manifest_entry::ProviderEntry;
pub use self::mirror::{MirrorFile, ProviderMirror};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::package_hash::fuzz as read_provider_package;
pub(crate) use self::package_hash::hash_faults;
pub(crate) use self::registry::discovery_url;
pub use self::registry::provider_versions;
pub use self::resolvable::ProviderRequest;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::testing::zip_package;
