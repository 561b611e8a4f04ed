//! Debian repositories: releases, indexes, versions, and package selection as apt does it.

mod choose;
mod deb_file;
mod fields;
mod install;
mod marking;
mod reason;
mod relation;
mod release;
mod request;
mod resolver;
mod trimmed;
mod universe;

pub use self::choose::{AptSelection, AptSettings, BaseSystem, choose, suite_packages};
pub use self::deb_file::{changelog, package_identity};
pub use self::fields::{IndexedVersion, check_index_size, listed_versions};
pub use self::relation::{compare as compare_versions, upstream as upstream_version};
pub use self::release::{
    AptRelease, ReleaseNames, is_target, target_language, target_names, target_paths,
};
pub use self::request::{is_request, pinned_version};
pub use self::trimmed::{TrimmedSuite, plain_path};
pub use self::universe::{AptVersion, AptVersionId, Universe};
