//! The content that the server offers, by the names that clients use. Except for generated package
//! metadata, the names come from the locks alone.

mod bundle_catalog;
mod chart_table;
mod file_table;
mod git_table;
mod listing;
mod provider_table;
mod repository;

pub(crate) use bundle_catalog::BundleCatalog;
pub(crate) use chart_table::CHART_INDEX;
#[cfg(test)]
pub(crate) use file_table::file_link;
pub(crate) use file_table::{UrlPath, media_type_of};
pub(crate) use git_table::{GitTable, ServedGitRepository};
pub(crate) use listing::{AttachedManifest, BundleListing, ItemListing};
pub(crate) use repository::{ServedRepository, pushed_names};
