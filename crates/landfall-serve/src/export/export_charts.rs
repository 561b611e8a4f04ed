//! Exports charts as an HTTP repository: archives, provenance files, and the index.

use super::export_files::write_all;
use super::{ExportFile, ExportMode, claim_files, collision};
use landfall_content::{BlobRead, if_exists, write_file};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart, chart_index, clash, index_entry};
use landfall_model::document::{read_text_input, yaml};
use landfall_model::report::{EntryKind, ItemStatus, Progress, RunReport};
use landfall_model::{Descriptor, Failure};
use serde_json::Value;
use std::path::Path;

/// Writes every chart of `lock` from `blobs` to `dir`: `<name>-<version>.tgz`, its `.prov`, and
/// `index.yaml`. An existing index keeps its other entries, unless their archives are no longer in
/// `dir`.
///
/// # Errors
/// Before anything is written: when two charts with the same name and version have different
/// archives or provenance files, a file of others exists, or an existing `index.yaml` cannot be
/// read. Afterwards: when the index cannot be written. The failure of a single chart is in the
/// report.
pub fn export_charts(
    lock: &Lock,
    blobs: &dyn BlobRead,
    dir: &Path,
    mode: ExportMode,
    progress: &dyn Progress,
) -> Result<RunReport, Failure> {
    let charts: Vec<ChartArchive> = lock
        .charts
        .iter()
        .filter_map(LockedChart::archive)
        .collect();
    for chart in &charts {
        // checked for all charts before the first file is written
        if let Some((other, path)) = clash(&charts, chart) {
            return Err(collision(&path, &other.item, &chart.item));
        }
    }
    let path = dir.join("index.yaml");
    let index_error = |why: String| Failure::write(&path, why);
    let present = if charts.is_empty() {
        Vec::new()
    } else {
        present_entries(&path, dir).map_err(index_error)?
    };
    let files: Vec<(String, &Descriptor)> = charts.iter().flat_map(ChartArchive::files).collect();
    let exported: Vec<_> = files
        .iter()
        .map(|(name, content)| chart_file(name, content))
        .collect();
    claim_files(dir, &exported, mode, |_| false)?;
    let mut report = write_all(exported, blobs, dir, mode.dry_run, progress);
    if mode.dry_run || charts.is_empty() {
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
    ExportFile::new(kind, name, content, name)
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

// Reads the `index.yaml` of a folder to which charts are exported: it may list other charts.

/// An entry of an existing index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PresentEntry {
    /// The name of the chart.
    pub(super) chart: String,
    version: Option<String>,
    digest: Option<String>,
    /// The entry as JSON.
    pub(super) text: String,
}

impl PresentEntry {
    /// The entry `value` of the chart `name`.
    fn new(name: &str, value: &Value) -> PresentEntry {
        let text_of = |key: &str| value[key].as_str().map(str::to_owned);
        PresentEntry {
            chart: name.to_owned(),
            version: text_of("version"),
            digest: text_of("digest"),
            text: value.to_string(),
        }
    }

    /// Whether it is about a chart with the name and version of `chart`.
    pub(super) fn is_version_of(&self, chart: &ChartArchive) -> bool {
        self.chart == chart.chart && self.version.as_deref() == Some(&*chart.version)
    }

    /// Whether it is about a chart with the name, version and content of `chart`.
    pub(super) fn is_same(&self, chart: &ChartArchive) -> bool {
        let digest = chart.archive.digest.hex();
        self.is_version_of(chart) && self.digest.as_deref() == Some(digest.as_str())
    }
}

/// The entries of the index at `path`, except those whose archives are no longer in its folder
/// `dir`. Empty if there is no index. An error is the reason why it cannot be read.
pub(super) fn present_entries(path: &Path, dir: &Path) -> Result<Vec<PresentEntry>, String> {
    let text = if_exists(read_text_input(path)).map_err(|error| error.to_string())?;
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let index: Value = yaml::from_str(&text)
        .map_err(|error| format!("the present file is not an index of charts: {error}"))?;
    let Some(charts) = index["entries"].as_object() else {
        return Err("the present file is not an index of charts; move it away".into());
    };
    let mut found = Vec::new();
    for (name, versions) in charts {
        let entries = versions.as_array().into_iter().flatten();
        let kept = entries.filter(|entry| has_archive(entry, dir));
        found.extend(kept.map(|entry| PresentEntry::new(name, entry)));
    }
    Ok(found)
}

/// Whether the archive of an entry may exist: it is in `dir`, or its URL is not the path of a file
/// there.
fn has_archive(entry: &Value, dir: &Path) -> bool {
    let urls = entry["urls"].as_array().into_iter().flatten();
    let mut urls = urls.filter_map(Value::as_str);
    urls.any(|url| may_exist(url, dir))
}

/// Whether the file at `url`, which is relative to the folder `dir`, may exist: it is in `dir`, or
/// the URL has a host, begins at the root of a server, or is not the same as a path.
pub(super) fn may_exist(url: &str, dir: &Path) -> bool {
    let is_path = !url.starts_with('/') && !url.contains("://") && !url.contains(['%', '?', '#']);
    !is_path || dir.join(url).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn chart(version: &str, content: &[u8]) -> ChartArchive {
        ChartArchive {
            item: "a".into(),
            chart: "app".into(),
            version: version.into(),
            archive: Descriptor::of(content, "application/gzip"),
            provenance: None,
        }
    }

    #[test]
    fn entries_are_read_unless_their_archives_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.yaml");
        let read = || present_entries(&path, dir.path());
        assert_eq!(read(), Ok(Vec::new()));
        let one = chart("1.0.0", b"1");
        let index = format!(
            "apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    digest: {}\n    \
         urls: [app-1.0.0.tgz]\n  - {{version: 0.9.0, urls: [gone.tgz]}}\n  more:\n  \
         - {{version: 2.0.0, urls: ['https://h/more.tgz']}}\n  rooted:\n  \
         - {{version: 1.0.0, urls: [/charts/rooted.tgz]}}\n  signed:\n  \
         - {{version: 1.0.0, urls: ['signed.tgz?sig=1']}}\n",
            one.archive.digest.hex()
        );
        fs::write(&path, index).unwrap();
        fs::write(dir.path().join("app-1.0.0.tgz"), "1").unwrap();
        let found = read().unwrap();
        let names: Vec<&str> = found.iter().map(|entry| &*entry.chart).collect();
        assert_eq!(names, ["app", "more", "rooted", "signed"]);
        assert!(found[0].is_same(&one));
        let other = chart("1.0.0", b"2");
        assert!(found[0].is_version_of(&other) && !found[0].is_same(&other));
        assert!(!found[0].is_version_of(&chart("2.0.0", b"1")));
        assert!(found[1].text.contains("https://h/more.tgz"));

        fs::write(&path, "mine: 1\n").unwrap();
        assert!(read().is_err_and(|why| why.contains("not an index of charts")));
    }
}
