//! Finds the dependencies that a chart does not contain, so that their images are not known.

use crate::chart::HelmChart;
use serde_yaml::Mapping;
use std::path::{Path, PathBuf};

/// The paths that the missing dependencies of `chart` and its subcharts would have in it. Omitted
/// are those that its default values disable, and those that are in one of the folders `audited`.
pub(super) fn missing_dependencies(chart: &HelmChart, audited: &[PathBuf]) -> Vec<PathBuf> {
    let values = chart.effective(&Mapping::new());
    let missing = chart.missing_dependencies(&values).into_iter();
    missing
        .filter(|dependency| {
            let folder = dependency.folder();
            folder.is_none_or(|folder| !is_among(&folder, audited))
        })
        .map(|dependency| PathBuf::from(&dependency.path))
        .collect()
}

/// Whether `folder` exists and is one of `folders`.
fn is_among(folder: &Path, folders: &[PathBuf]) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    folders
        .iter()
        .any(|other| other.canonicalize().is_ok_and(|other| other == folder))
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
             - {name: off, version: 1.x, condition: off.enabled}\n\
             - {name: near, version: 1.x, repository: 'file://../near'}\n",
        );
        put("c/values.yaml", "off: {enabled: false}\n");
        put(
            "c/charts/inside/Chart.yaml",
            "name: inside\nversion: 1.0.0\ndependencies: [{name: deep, version: 1.x}]\n",
        );
        put("near/Chart.yaml", "name: near\nversion: 1.0.0\n");
        let folders = ["c", "near"].map(|chart| dir.path().join(chart));
        let chart = HelmChart::load(&folders[0], &Limits::default()).unwrap();
        let charts = folders[0].join("charts");
        let missing = ["gone", "inside/charts/deep", "near"].map(|path| charts.join(path));
        assert_eq!(missing_dependencies(&chart, &folders[..1]), missing);
        assert_eq!(missing_dependencies(&chart, &folders), missing[..2]);
    }
}
