//! Debian repositories: releases, indexes, versions, and package selection as apt does it.

mod base;
mod candidates;
mod choose;
mod conflicts;
mod deb_file;
mod fields;
mod index_size;
mod install;
mod listed_versions;
mod marking;
mod offer;
mod paragraph;
mod reason;
mod relation;
mod release;
mod release_names;
mod request;
mod resolver;
mod scores;
mod solutions;
mod suite_preference;
mod targets;
mod trimmed;
mod universe;
mod version;

pub use base::{BaseSystem, suite_packages};
pub use choose::{AptSelection, AptSettings, choose};
pub use deb_file::{changelog, package_identity};
pub use index_size::check_index_size;
pub use listed_versions::{IndexedVersion, listed_versions};
pub use offer::{AptVersion, AptVersionId};
pub use release::AptRelease;
pub use release_names::ReleaseNames;
pub use request::{is_request, pinned_version};
pub use targets::{is_target, target_language, target_names, target_paths};
pub use trimmed::{TrimmedSuite, plain_path};
pub use universe::Universe;
pub use version::{
    compare as compare_versions, fits as version_fits, upstream as upstream_version,
};
