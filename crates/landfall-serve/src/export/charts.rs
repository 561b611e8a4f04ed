//! Exports charts: archives, provenance, and the index that makes a folder of them a repository.

use super::ExportError;
use super::paths::{ExportFile, MODE};
use super::run::write_all;
use landfall_content::{BlobRead, write_file};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart, UrlFile, chart_index, clash, index_entry};
use landfall_model::Descriptor;
use landfall_model::report::{EntryKind, ItemStatus, Progress, RunReport};
use std::path::{Path, PathBuf};

/// Writes every chart of `lock` from `blobs` to `dir`: `<name>-<version>.tgz`, its `.prov`, and
/// `index.yaml`. With `dry` nothing is written.
///
/// # Errors
/// Before anything is written: when two charts would be one file. Afterwards: when the index cannot
/// be written. What fails of a chart is in the report.
pub fn export_charts(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    dry: bool,
    progress: &dyn Progress,
) -> Result<RunReport, ExportError> {
    let charts: Vec<ChartArchive> = lock
        .charts
        .iter()
        .filter_map(LockedChart::archive)
        .collect();
    if let Some((chart, other)) = charts
        .iter()
        .find_map(|chart| Some((chart, clash(&charts, chart)?)))
    {
        let (path, first, second) = (chart.file(), other.item.clone(), chart.item.clone());
        return Err(ExportError::Collision {
            path,
            first,
            second,
        });
    }
    let files: Vec<(String, &Descriptor)> = charts.iter().flat_map(ChartArchive::files).collect();
    let exported = files.iter().map(|(name, content)| {
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
            mode: MODE,
            paths: vec![PathBuf::from(name)],
        }
    });
    let mut report = write_all(exported.collect(), blobs, dir, dry, progress);
    if dry || charts.is_empty() {
        return Ok(report);
    }
    let mut entries = Vec::new();
    for chart in &charts {
        match index_entry(chart, blobs) {
            Ok(entry) => entries.push((chart, entry)),
            Err(why) => {
                let file = chart.file();
                let item = report.items.iter_mut().find(|item| item.name == file);
                item.into_iter()
                    .filter(|item| item.reason.is_none())
                    .for_each(|item| {
                        (item.status, item.reason) =
                            (ItemStatus::Failed, Some(format!("not in the index: {why}")));
                    });
            }
        }
    }
    let path = dir.join("index.yaml");
    let written = write_file(&path, chart_index(entries).as_bytes());
    written.map_err(|error| ExportError::Index {
        path,
        why: error.to_string(),
    })?;
    Ok(report)
}
