//! Debian repositories: releases, indexes, versions, and package selection as apt does it.

mod base;
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
mod solutions;
mod targets;
mod trimmed;
mod universe;
mod version;

pub use self::base::{BaseSystem, suite_packages};
pub use self::choose::{AptSelection, AptSettings, choose};
pub use self::deb_file::{changelog, package_identity};
pub use self::fields::{IndexedVersion, check_index_size, listed_versions};
pub use self::release::{AptRelease, ReleaseNames};
pub use self::request::{is_request, pinned_version};
pub use self::targets::{is_target, target_language, target_names, target_paths};
pub use self::trimmed::{TrimmedSuite, plain_path};
pub use self::universe::{AptVersion, AptVersionId, Universe};
pub use self::version::{compare as compare_versions, upstream as upstream_version};
