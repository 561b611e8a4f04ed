//! The content that the server offers, by the names that clients use. Except for generated package
//! metadata, the names come from the locks alone.

mod bundle_catalog;
mod chart_table;
mod file_table;
mod repository;

pub(crate) use self::bundle_catalog::{
    AttachedManifest, BundleCatalog, BundleListing, ItemListing,
};
pub(crate) use self::chart_table::CHART_INDEX;
#[cfg(test)]
pub(crate) use self::file_table::file_link;
pub(crate) use self::file_table::{GitTable, ServedGitRepository, UrlPath, media_type_of};
pub(crate) use self::repository::{ServedRepository, pushed_names};
