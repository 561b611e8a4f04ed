//! Exports charts as an HTTP repository: archives, provenance files, and the index.

use super::ExportError;
use super::export_files::write_all;
use super::export_paths::{DEFAULT_MODE, ExportFile};
use super::present_index::present_entries;
use landfall_content::{BlobRead, write_file};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart, UrlFile, chart_index, clash, index_entry};
use landfall_model::Descriptor;
use landfall_model::report::{EntryKind, ItemStatus, Progress, RunReport};
use std::path::{Path, PathBuf};

/// Writes every chart of `lock` from `blobs` to `dir`: `<name>-<version>.tgz`, its `.prov`, and
/// `index.yaml`. An existing index keeps its other entries, unless their archives are no longer in
/// `dir`. `dry_run` writes nothing.
///
/// # Errors
/// Before anything is written: when two charts with the same name and version have different
/// archives or provenance files, or when an existing `index.yaml` cannot be read. Afterwards: when
/// the index cannot be written. The failure of a single chart is in the report.
pub fn export_charts(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry_run: bool,
    progress: &dyn Progress,
) -> Result<RunReport, ExportError> {
    let charts: Vec<ChartArchive> = lock
        .charts
        .iter()
        .filter_map(LockedChart::archive)
        .collect();
    for chart in &charts {
        // checked for all charts before the first file is written
        if let Some((other, path)) = clash(&charts, chart) {
            return Err(ExportError::Collision {
                path,
                first: other.item.clone(),
                second: chart.item.clone(),
            });
        }
    }
    let path = dir.join("index.yaml");
    let index_error = |why: String| ExportError::Index {
        path: path.clone(),
        why,
    };
    let present = if charts.is_empty() {
        Vec::new()
    } else {
        present_entries(&path, dir).map_err(index_error)?
    };
    let files: Vec<(String, &Descriptor)> = charts.iter().flat_map(ChartArchive::files).collect();
    let exported = files
        .iter()
        .map(|(name, content)| chart_file(name, content))
        .collect();
    let mut report = write_all(exported, blobs, dir, dry_run, progress);
    if dry_run || charts.is_empty() {
        return Ok(report);
    }
    // after the archives: an index must not name files that are not there yet
    let mut entries = Vec::new();
    for chart in &charts {
        match index_entry(chart, blobs) {
            Ok(entry) => entries.push((chart, entry)),
            // an earlier export has written the same archive and its entry
            Err(_) if present.iter().any(|entry| entry.is_same(chart)) => {}
            Err(why) => report_unindexed(&mut report, &chart.file(), &why),
        }
    }
    let kept = present
        .iter()
        .filter(|present| {
            !entries
                .iter()
                .any(|(chart, _)| present.is_version_of(chart))
        })
        .map(|present| (&*present.chart, present.text.clone()));
    let new = entries
        .iter()
        .map(|(chart, entry)| (&*chart.chart, entry.clone()));
    let index = chart_index(new.chain(kept));
    write_file(&path, index.as_bytes()).map_err(|error| index_error(error.to_string()))?;
    Ok(report)
}

fn chart_file<'a>(name: &'a str, content: &'a Descriptor) -> ExportFile<'a> {
    let kind = if name.ends_with(".prov") {
        EntryKind::Sidecar
    } else {
        EntryKind::Chart
    };
    let file = UrlFile {
        kind,
        name,
        urls: Vec::new(),
        digest: &content.digest,
        size: content.size,
        mode: None,
        members: &[],
    };
    ExportFile {
        file,
        mode: DEFAULT_MODE,
        paths: vec![PathBuf::from(name)],
    }
}

/// Marks the archive `file` of a chart that is not in the index as failed, unless the report
/// already contains a reason for it.
fn report_unindexed(report: &mut RunReport, file: &str, why: &str) {
    for item in &mut report.items {
        if item.name == file && item.reason.is_none() {
            item.status = ItemStatus::Failed;
            item.reason = Some(format!("not in the index: {why}"));
        }
    }
}
