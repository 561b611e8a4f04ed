//! The licences of locked images and charts, as far as their content is available.

use crate::cli::shared::image_facts::ImageFacts;
use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart, LockedItem};
use landfall_model::Limits;
use landfall_model::document::{ArchiveBudget, unpack, yaml};
use landfall_model::report::EntryKind;
use serde_yaml::Value;
use std::collections::BTreeMap;

/// The annotation with the licence of a chart, as Artifact Hub reads it.
const OF_CHARTS: &str = "artifacthub.io/license";

/// Returns the licences of the items that declare one, by the name of the item. Images declare it
/// in annotations or labels, charts in the annotations of Chart.yaml. Content that `blobs` lacks is
/// skipped.
pub(crate) fn licences(lock: &Lock, blobs: &dyn BlobRead) -> BTreeMap<String, String> {
    let licence = |item: &dyn LockedItem| match item.as_chart().and_then(LockedChart::archive) {
        Some(chart) => of_chart(&chart, blobs),
        None if item.kind() == EntryKind::Image => ImageFacts::of(&item.entry(), blobs).licences,
        None => None,
    };
    lock.items()
        .filter_map(|item| Some((item.name().into_owned(), licence(item)?)))
        .collect()
}

fn of_chart(chart: &ChartArchive, blobs: &dyn BlobRead) -> Option<String> {
    let limits = Limits::default();
    if chart.archive.size > limits.archive_bytes {
        return None;
    }
    let files = unpack(
        &blobs.read(&chart.archive).ok()?,
        &mut ArchiveBudget::new(&limits),
    )
    .ok()?;
    // Subcharts in the folder `charts` have a Chart.yaml too.
    let is_its_own = |path: &&String| path.split('/').count() == 2 && path.ends_with("/Chart.yaml");
    let text = &files[files.keys().find(is_its_own)?];
    let metadata: Value = yaml::from_slice(text).ok()?;
    Some(
        metadata
            .get("annotations")?
            .get(OF_CHARTS)?
            .as_str()?
            .to_owned(),
    )
}
