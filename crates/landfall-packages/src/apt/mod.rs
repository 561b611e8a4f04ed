//! Debian's repositories: releases, indexes, versions, and the choice that apt makes among
//! packages.

mod base;
mod candidates;
mod choose;
mod conflicts;
mod deb_file;
mod fields;
mod install;
mod marking;
mod of_suite;
mod offer;
mod offered;
mod paragraph;
mod reason;
mod relation;
mod release;
mod release_names;
mod request;
mod resolver;
mod scores;
mod solutions;
mod targets;
mod trimmed;
mod universe;
mod version;

pub use base::{BaseSystem, suite_packages};
pub use choose::{AptSelection, AptSettings, choose};
pub use deb_file::{changelog, package_identity};
pub use offer::{AptVersion, AptVersionId};
pub use offered::{IndexedVersion, offered};
pub use release::AptRelease;
pub use release_names::ReleaseNames;
pub use request::{is_request, pinned};
pub use targets::{is_target, target_language, target_names, target_paths};
pub use trimmed::{TrimmedSuite, plain_path};
pub use universe::Universe;
pub use version::{
    compare as compare_versions, fits as version_fits, upstream as upstream_version,
};
