//! Collects the files of a chart in a folder: metadata, default values, templates, subcharts.

use crate::error::ChartError;
use crate::inputs::is_document;
use landfall_model::document::{ArchiveBudget, UnpackedFiles, read_input, yaml};
use landfall_model::{Failure, Limits};
use serde::Deserialize;
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

/// The files that are read at the root of a chart.
const CHART_FILES: [&str; 3] = ["Chart.yaml", "values.yaml", "requirements.yaml"];

/// Reads those files of the chart in the folder `path` that may name images, and counts them
/// against `budget`.
pub(super) fn collect_chart_files(
    path: &Path,
    limits: &Limits,
    budget: &mut ArchiveBudget,
) -> Result<UnpackedFiles, ChartError> {
    let mut collector = FileCollector {
        limits,
        budget,
        files: UnpackedFiles::new(),
    };
    collector.add_chart(path, "", 0)?;
    Ok(collector.files)
}

struct FileCollector<'c> {
    limits: &'c Limits,
    budget: &'c mut ArchiveBudget,
    files: UnpackedFiles,
}

impl FileCollector<'_> {
    /// Adds the files of the chart in `dir`. Their names get the prefix `prefix`.
    fn add_chart(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<(), ChartError> {
        for name in CHART_FILES {
            let path = dir.join(name);
            if file_type(&path)?.is_some_and(|kind| kind.is_file()) {
                self.add_file(&path, format!("{prefix}{name}"))?;
            }
        }
        for name in ["templates", "files"] {
            self.add_documents(&dir.join(name), &format!("{prefix}{name}/"))?;
        }
        let charts = dir.join("charts");
        if !file_type(&charts)?.is_some_and(|kind| kind.is_dir()) {
            return Ok(());
        }
        // a link may lead to a folder that contains the link
        if depth > self.limits.chart_depth {
            return Err(too_deep(charts.display(), self.limits).into());
        }
        for entry in fs::read_dir(&charts).map_err(|source| cannot_open(&charts, source))? {
            let path = entry.map_err(|source| cannot_open(&charts, source))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}charts/{name}");
            let Some(kind) = file_type(&path)? else {
                continue;
            };
            if kind.is_dir() {
                self.add_chart(&path, &format!("{name}/"), depth + 1)?;
            } else if name.ends_with(".tgz") && kind.is_file() {
                self.add_file(&path, name)?;
            }
        }
        self.check_count(&charts)
    }

    /// Adds the documents in `dir` and below it. A link to a folder is not followed.
    fn add_documents(&mut self, dir: &Path, prefix: &str) -> Result<(), ChartError> {
        // a chart need not have this folder
        if !file_type(dir)?.is_some_and(|kind| kind.is_dir()) {
            return Ok(());
        }
        for entry in fs::read_dir(dir).map_err(|source| cannot_open(dir, source))? {
            let entry = entry.map_err(|source| cannot_open(dir, source))?;
            let path = entry.path();
            let name = entry.file_name();
            // a name that is not UTF-8 only matters for messages
            let name = name.to_string_lossy();
            let kind = entry
                .file_type()
                .map_err(|source| cannot_open(&path, source))?;
            if kind.is_dir() {
                self.add_documents(&path, &format!("{prefix}{name}/"))?;
            } else if is_document(Path::new(&*name))
                && file_type(&path)?.is_some_and(|kind| kind.is_file())
            {
                self.add_file(&path, format!("{prefix}{name}"))?;
            }
        }
        self.check_count(dir)
    }

    fn check_count(&self, dir: &Path) -> Result<(), ChartError> {
        if self.files.len() <= self.limits.archive_files {
            return Ok(());
        }
        Err(too_large(dir.display(), self.limits.archive_files as u64).into())
    }

    /// Adds the file at `path` under this name.
    fn add_file(&mut self, path: &Path, name: String) -> Result<(), ChartError> {
        let content = read_limited(path, self.limits)?;
        self.budget
            .take(content.len() as u64)
            .map_err(archive_error(path.display()))?;
        self.files.insert(name, content);
        Ok(())
    }
}

/// Reads a file, unless it is larger than an archive may be.
pub(super) fn read_limited(path: &Path, limits: &Limits) -> Result<Vec<u8>, ChartError> {
    let metadata = fs::metadata(path).map_err(|source| cannot_open(path, source))?;
    if metadata.len() > limits.archive_bytes {
        return Err(too_large(path.display(), limits.archive_bytes).into());
    }
    read_input(path).map_err(|source| cannot_open(path, source))
}

/// The type of the file at `path`, which may be a link. `None` if there is no file, or the link
/// leads to none.
fn file_type(path: &Path) -> Result<Option<fs::FileType>, ChartError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_open(path, error)),
    }
}

fn cannot_open(path: &Path, error: io::Error) -> ChartError {
    Failure::read(path, error).into()
}

/// The fields of Chart.yaml that landfall uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HelmMetadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) app_version: Value,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub(super) dependencies: Vec<HelmDependency>,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    annotations: BTreeMap<String, Value>,
}

impl HelmMetadata {
    /// The images in the annotations of Artifact Hub, of Bitnami, and of Helm's own convention.
    pub(super) fn images(&self) -> Vec<String> {
        const LISTS: [&str; 3] = ["artifacthub.io/images", "images", "helm.sh/images"];
        let texts = LISTS
            .iter()
            .filter_map(|key| self.annotations.get(*key)?.as_str());
        let lists = texts
            .filter_map(|text| yaml::from_str::<Vec<Value>>(text).ok())
            .flatten();
        lists
            .filter_map(|entry| Some(entry.get("image")?.as_str()?.trim().to_owned()))
            .collect()
    }
}

/// The dependencies in requirements.yaml, a file of charts for Helm 2.
#[derive(Default, Deserialize)]
pub(super) struct HelmRequirements {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub(super) dependencies: Vec<HelmDependency>,
}

#[derive(Deserialize)]
pub(super) struct HelmDependency {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: Value,
    #[serde(default)]
    pub(super) repository: Value,
    #[serde(default)]
    pub(super) alias: Option<String>,
    #[serde(default)]
    pub(super) condition: Option<String>,
    #[serde(default)]
    tags: Value,
}

impl HelmDependency {
    /// The tags, by which values enable or disable several dependencies.
    pub(super) fn tags(&self) -> Vec<String> {
        let tags = self.tags.as_sequence().into_iter().flatten();
        tags.filter_map(|tag| Some(tag.as_str()?.to_owned()))
            .collect()
    }
}

/// Returns a function that adds the path of an archive to a failure to unpack it.
pub(super) fn archive_error(path: impl fmt::Display) -> impl FnOnce(Failure) -> Failure {
    move |error| Failure::usage(format!("{path}: {error}"))
}

/// The failure of a chart in which charts are nested too deeply.
pub(super) fn too_deep(path: impl fmt::Display, limits: &Limits) -> Failure {
    let depth = limits.chart_depth;
    Failure::usage(format!("{path}: charts are nested deeper than {depth}"))
}

/// The failure of a chart with a file or folder that is too large.
pub(super) fn too_large(path: impl fmt::Display, limit: u64) -> Failure {
    Failure::usage(format!(
        "{path} has more than {limit} bytes or files, too many for a chart"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_chart_that_cannot_be_read_is_an_error() {
        for part in [
            "templates",
            "templates/x.yaml",
            "files",
            "values.yaml",
            "charts",
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("Chart.yaml"), "name: c\n").unwrap();
            let collected = || {
                let limits = Limits::default();
                let mut budget = ArchiveBudget::new(&limits);
                collect_chart_files(dir.path(), &limits, &mut budget)
            };
            assert_eq!(collected().unwrap().len(), 1);
            let path = dir.path().join(part);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // a link to itself, which not even root can follow
            std::os::unix::fs::symlink(&path, &path).unwrap();
            let error = collected().unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("cannot read {}: ", path.display())),
                "{part}: {error}"
            );
        }
    }
}
