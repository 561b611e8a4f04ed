//! Manifests: reads, expands and validates them, and merges them into one list of requests.
//!
//! Start at [`load`]. It parses each file (`schema`), fills in variables and reads `lists`
//! (`check`), and merges the requests of all files (`merge`).

mod catalogue;
mod check;
mod draft;
mod entry_edits;
mod entry_steps;
mod entry_versions;
mod expanded_manifest;
mod faults;
mod first;
mod import;
mod item_requests;
mod kept_versions;
mod list_edits;
mod lists;
mod load;
mod manifest_edits;
mod merge;
mod merged_manifest;
mod schema;
mod updatable_version;
mod updatable_versions;
mod variable_versions;
mod version_location;

#[cfg(test)]
mod tests;

pub use catalogue::{CATALOGUE, CatalogueManifest};
pub use draft::{DraftEntry, DraftItem, DraftManifest, draft, platforms_line};
pub use expanded_manifest::{ListSource, TrustRootSource};
pub use first::{MORE, example_manifest, from_list};
pub use import::{IMPORTS, ImportSource, ImportedItems, manifest_of};
pub use item_requests::{ItemRequests, RequestSummary, RequestVisitor};
pub use kept_versions::KeptVersions;
pub use list_edits::set_versions;
pub use lists::list_format;
pub use load::{FileOverrides, load_edited, load_for, manifest_files};
pub use load::{LoadManifestError, load};
pub use manifest_edits::{set_digest, set_version, text_of};
pub use merged_manifest::MergedManifest;
pub use schema::ManifestDocument;
pub use updatable_version::{PackageVersions, UpdatableVersion, VersionSource};
pub use updatable_versions::{list_sources, trust_root_sources, updatable_versions};
