//! Exports charts as an HTTP repository: archives, provenance files, and the index.

use super::ExportError;
use super::export_files::write_all;
use super::export_paths::{DEFAULT_MODE, ExportFile};
use landfall_content::{BlobRead, write_file};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart, UrlFile, chart_index, clash, index_entry};
use landfall_model::Descriptor;
use landfall_model::document::{read_text_input, yaml};
use landfall_model::report::{EntryKind, ItemStatus, Progress, RunReport};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Writes every chart of `lock` from `blobs` to `dir`: `<name>-<version>.tgz`, its `.prov`, and
/// `index.yaml`. `dry_run` writes nothing.
///
/// # Errors
/// Before anything is written: when two charts with the same name and version have different
/// archives or provenance files. Afterwards: when the index cannot be written. The failure of a
/// single chart is in the report.
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
            Err(why) => report_unindexed(&mut report, &chart.file(), &why),
        }
    }
    let path = dir.join("index.yaml");
    let dropped = dropped_charts(&path, &charts);
    if let Some(first) = dropped.first() {
        progress.note(&format!(
            "{} no longer lists charts that are not exported ({}, such as {first}); \
             `helm repo index {}` lists all archives in the folder",
            path.display(),
            dropped.len(),
            dir.display()
        ));
    }
    match write_file(&path, chart_index(entries).as_bytes()) {
        Ok(()) => Ok(report),
        Err(error) => Err(ExportError::Index {
            path,
            why: error.to_string(),
        }),
    }
}

/// The charts, as `name version`, that the present index at `path` lists and that are not in
/// `charts`. Empty if there is no index, or it cannot be read.
fn dropped_charts(path: &Path, charts: &[ChartArchive]) -> BTreeSet<String> {
    let text = read_text_input(path).unwrap_or_default();
    let index: Value = yaml::from_str(&text).unwrap_or_default();
    let mut dropped = BTreeSet::new();
    for (name, versions) in index["entries"].as_object().into_iter().flatten() {
        for one in versions.as_array().into_iter().flatten() {
            let version = one["version"].as_str().unwrap_or_default();
            if !charts
                .iter()
                .any(|chart| chart.chart == *name && chart.version == version)
            {
                dropped.insert(format!("{name} {version}"));
            }
        }
    }
    dropped
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

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    #[test]
    fn charts_that_only_the_present_index_lists_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.yaml");
        let archive = Descriptor {
            digest: Digest::sha256(b"app"),
            size: 3,
            media_type: "application/gzip".into(),
        };
        let app = ChartArchive {
            item: "app".into(),
            chart: "app".into(),
            version: "2.0.0".into(),
            archive,
            provenance: None,
        };
        let charts = [app];
        assert!(dropped_charts(&path, &charts).is_empty());
        let index = "entries:\n  app:\n  - {version: 1.0.0}\n  - {version: 2.0.0}\n  own:\n  - version: 3.0.0\n";
        std::fs::write(&path, index).unwrap();
        let dropped: Vec<String> = dropped_charts(&path, &charts).into_iter().collect();
        assert_eq!(dropped, ["app 1.0.0", "own 3.0.0"]);
    }
}
