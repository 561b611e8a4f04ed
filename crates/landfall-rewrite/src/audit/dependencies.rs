//! Finds the dependencies that a chart does not contain, so that their images are not known.

use crate::chart::HelmChart;
use serde_yaml::Mapping;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The paths that the missing dependencies of `chart` and its subcharts would have in it. Omitted
/// are those that its default values disable, and those that are in one of the folders `audited`.
pub(super) fn missing_dependencies(
    chart: &HelmChart,
    audited: &AuditedFolders<'_>,
) -> Vec<PathBuf> {
    let values = chart.effective(&Mapping::new());
    let missing = chart.missing_dependencies(&values).into_iter();
    let mut paths: Vec<PathBuf> = missing
        .filter(|dependency| {
            let folder = dependency.folder();
            folder.is_none_or(|folder| !audited.contains(&folder))
        })
        .map(|dependency| PathBuf::from(&dependency.path))
        .collect();
    // several aliases of a chart have its path
    paths.dedup();
    paths
}

/// The folders of the charts that are audited.
pub(super) struct AuditedFolders<'f> {
    folders: &'f [PathBuf],
    /// Their canonical paths, after the first use.
    canonical: OnceCell<BTreeSet<PathBuf>>,
}

impl<'f> AuditedFolders<'f> {
    pub(super) fn new(folders: &'f [PathBuf]) -> AuditedFolders<'f> {
        AuditedFolders {
            folders,
            canonical: OnceCell::new(),
        }
    }

    /// Whether `folder` exists and is one of them.
    fn contains(&self, folder: &Path) -> bool {
        let Ok(folder) = folder.canonicalize() else {
            return false;
        };
        let canonical = self.canonical.get_or_init(|| {
            let existing = self
                .folders
                .iter()
                .filter_map(|one| one.canonicalize().ok());
            existing.collect()
        });
        canonical.contains(&folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Limits;
    use std::fs;

    #[test]
    fn enabled_dependencies_outside_of_audited_folders_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "c/Chart.yaml",
            "name: c\nversion: 1.0.0\ndependencies:\n\
             - {name: gone, version: 1.x, repository: 'https://charts.test'}\n\
             - {name: inside, version: 1.x, repository: ~}\n\
             - {name: idle, version: 1.x, condition: idle.enabled}\n\
             - {name: near, version: 1.x, repository: 'file://../near'}\n\
             - {name: tagged, version: 1.x, tags: [extra, other]}\n\
             - {name: used, version: 1.x, tags: [extra], condition: used.enabled}\n\
             - {name: used, version: 1.x, alias: again, tags: [extra, main]}\n",
        );
        put(
            "c/values.yaml",
            "idle: {enabled: false}\nused: {enabled: true}\ntags: {extra: false, main: true}\n",
        );
        put(
            "c/charts/inside/Chart.yaml",
            "name: inside\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x}]\n",
        );
        put("near/Chart.yaml", "name: near\nversion: 1.0.0\n");
        let folders = ["c", "near"].map(|chart| dir.path().join(chart));
        let chart = HelmChart::load(&folders[0], &Limits::default()).unwrap();
        let charts = folders[0].join("charts");
        let missing = ["gone", "inside/charts/deep", "near", "used"].map(|path| charts.join(path));
        let without =
            |audited: &[PathBuf]| missing_dependencies(&chart, &AuditedFolders::new(audited));
        assert_eq!(without(&folders[..1]), missing);
        assert_eq!(without(&folders), [&missing[..2], &missing[3..]].concat());
    }
}
