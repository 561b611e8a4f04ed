//! A Helm chart: an artifact of a registry, carried unchanged; or an archive of an HTTP repository,
//! wrapped into an artifact together with its provenance. A chart's dependencies and the images
//! found in the chart are locked with it.

mod images;
mod kind;
mod locked;
mod manifest_entry;
mod metadata;
mod name;
mod parts;
mod provenance;
mod repository;
mod request;
mod resolvable;
mod resolve;
mod schema;

pub use self::images::{Discovery, FindImages, FoundImages};
pub use self::locked::{ChartImage, LockedChart, OpenReference};
pub(crate) use self::manifest_entry::{ChartEntry, name_of};
pub use self::name::ChartName;
pub(crate) use self::parts::entry;
pub use self::parts::{ChartArchive, clash, index, index_entry};
pub use self::repository::versions as chart_versions;
pub use self::request::ChartRequest;
pub use self::schema::schema_urls;

/// Reads `archive` as a chart: its Chart.yaml and its unbundled dependencies.
///
/// # Errors
/// If it is not a chart, or exceeds a limit.
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub fn fuzz(archive: &[u8], limits: &landfall_model::Limits) -> Result<(), String> {
    let mut budget = landfall_model::document::ArchiveBudget::new(limits);
    let files = metadata::files_of(archive, &mut budget)?;
    metadata::chart_yaml(&files)?;
    metadata::outside_needs(files, &mut budget, limits).map(drop)
}
