//! Loads charts from folders and archives.

use super::{HelmChart, MissingDependency, plain, values_within};
use crate::inputs::is_document;
use landfall_content::if_exists;
use landfall_model::document::yaml::{self, YamlBudget};
use landfall_model::document::{
    self, ArchiveBudget, BundledChart, Diagnostic, UnpackedFiles, bundled_charts, in_yaml_1_2,
    read_input, unpack_chart,
};
use landfall_model::{Failure, Limits};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value as Json;
use serde_yaml::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;
use std::{fmt, fs, io};

/// Why a chart in a folder or archive cannot be read or rewritten.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// It has no Chart.yaml.
    #[error(transparent)]
    NoChart(Failure),
    /// Any other failure.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A document of the chart is not YAML, or has the wrong structure.
impl From<Box<Diagnostic>> for ChartError {
    fn from(diagnostic: Box<Diagnostic>) -> ChartError {
        ChartError::Failed(diagnostic.into())
    }
}

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Failure {
        Failure::usage(error.to_string())
    }
}

impl HelmChart {
    /// Reads the chart in the folder or archive at `path`.
    ///
    /// # Errors
    /// If it is not a chart, cannot be read, or exceeds the limits.
    pub fn load(path: &Path, limits: &Limits) -> Result<HelmChart, ChartError> {
        let metadata = fs::metadata(path).map_err(|error| Failure::read(path, error))?;
        let name = path.display().to_string();
        let mut loader = ChartLoader::new(limits);
        let files = if metadata.is_dir() {
            collect_chart_files(path, limits, &mut loader.archives)?
        } else {
            loader.unpack(&name, &read_limited(path, limits)?)?
        };
        loader.chart(&name, files, 0)
    }

    /// Reads the chart in `archive`. Messages call the archive `at`.
    ///
    /// # Errors
    /// If it is not a chart, cannot be read, or exceeds the limits.
    pub fn of_archive(at: &str, archive: &[u8], limits: &Limits) -> Result<HelmChart, ChartError> {
        let mut loader = ChartLoader::new(limits);
        let files = loader.unpack(at, archive)?;
        // messages about the content name the chart, if its name can be read
        let metadata = files.get("Chart.yaml").and_then(|yaml| {
            read::<HelmMetadata>(at, &decode_text(yaml), &mut YamlBudget::default()).ok()
        });
        let name = metadata.map_or_else(|| at.to_owned(), |metadata| metadata.name);
        loader.chart(&name, files, 0)
    }
}

/// Loads a chart, and enforces the limits for it and all charts in it.
struct ChartLoader<'l> {
    limits: &'l Limits,
    archives: ArchiveBudget,
    yaml: YamlBudget,
    /// The number of subcharts that may still be loaded.
    charts: usize,
}

impl<'l> ChartLoader<'l> {
    fn new(limits: &'l Limits) -> ChartLoader<'l> {
        ChartLoader {
            limits,
            archives: ArchiveBudget::new(limits),
            yaml: YamlBudget::default(),
            charts: limits.charts_inside,
        }
    }

    fn unpack(&mut self, at: &str, bytes: &[u8]) -> Result<UnpackedFiles, ChartError> {
        Ok(unpack_chart(bytes, &mut self.archives).map_err(archive_error(at))?)
    }

    /// Reads the chart with these files. `at` is its path for messages.
    fn chart(
        &mut self,
        at: &str,
        mut files: UnpackedFiles,
        depth: usize,
    ) -> Result<HelmChart, ChartError> {
        let limits = self.limits;
        if depth > limits.chart_depth {
            return Err(too_deep(at, limits).into());
        }
        if depth > 0 {
            self.count_chart(at)?;
        }
        let metadata = self.metadata(at, &mut files)?;
        let max_bytes = limits.chart_file_bytes;
        let large = files
            .iter()
            .find(|(name, content)| content.len() > max_bytes && is_text(name));
        if let Some((name, _)) = large {
            return Err(too_large(format!("{at}/{name}"), max_bytes as u64).into());
        }
        let values_text = decode_text(&files.remove("values.yaml").unwrap_or_default());
        let values_file = format!("{at}/values.yaml");
        let values = values_within(&values_file, &values_text, &mut self.yaml)?;
        let mut documents = Vec::new();
        let mut helpers = Vec::new();
        for (name, content) in &files {
            if name.starts_with("templates/") && name.ends_with(".tpl") {
                helpers.push((format!("{at}/{name}"), decode_text(content)));
            } else if !name.starts_with("charts/") && is_document(Path::new(name)) {
                documents.push((format!("{at}/{name}"), decode_text(content)));
            }
        }
        let subcharts = self.subcharts(at, files, depth)?;
        let missing = missing_dependencies(at, &subcharts, &metadata.dependencies);
        Ok(HelmChart {
            key: metadata.name.clone(),
            version: plain(&metadata.version).unwrap_or_default(),
            app_version: plain(&metadata.app_version),
            condition: None,
            file: format!("{at}/Chart.yaml"),
            images: metadata.images(),
            helpers,
            values_file,
            values_text,
            positions: OnceLock::new(),
            values,
            documents,
            subcharts: self.by_dependencies(subcharts, &metadata.dependencies)?,
            missing,
            name: metadata.name,
        })
    }

    /// Removes Chart.yaml and requirements.yaml from `files`, and reads them.
    fn metadata(
        &mut self,
        at: &str,
        files: &mut UnpackedFiles,
    ) -> Result<HelmMetadata, ChartError> {
        let text = files.remove("Chart.yaml").ok_or_else(|| {
            ChartError::NoChart(Failure::usage(format!(
                "{at} is not a chart: it has no Chart.yaml; name a chart's folder or its .tgz"
            )))
        })?;
        let file = format!("{at}/Chart.yaml");
        let mut metadata: HelmMetadata = read(&file, &decode_text(&text), &mut self.yaml)?;
        if let Some(text) = files.remove("requirements.yaml") {
            let file = format!("{at}/requirements.yaml");
            let requirements: Option<HelmRequirements> =
                read(&file, &decode_text(&text), &mut self.yaml)?;
            metadata
                .dependencies
                .extend(requirements.unwrap_or_default().dependencies);
        }
        Ok(metadata)
    }

    /// Reads the charts in `charts/`.
    fn subcharts(
        &mut self,
        at: &str,
        files: UnpackedFiles,
        depth: usize,
    ) -> Result<Vec<HelmChart>, ChartError> {
        let mut charts = Vec::new();
        for (name, chart) in bundled_charts(files) {
            let at = format!("{at}/charts/{name}");
            let files = match chart {
                BundledChart::Folder(files) => files,
                BundledChart::Archive(bytes) => self.unpack(&at, &bytes)?,
            };
            charts.push(self.chart(&at, files, depth + 1)?);
        }
        Ok(charts)
    }

    /// Returns the subcharts under the keys of their dependencies, in the order of the keys. A
    /// chart that no dependency names has its own name as key. A chart that several dependencies
    /// name is copied.
    fn by_dependencies(
        &mut self,
        charts: Vec<HelmChart>,
        dependencies: &[HelmDependency],
    ) -> Result<Vec<HelmChart>, ChartError> {
        let mut by_key: BTreeMap<String, HelmChart> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for dependency in dependencies {
            let Some(chart) = dependency_chart(&charts, dependency) else {
                continue;
            };
            if !used.insert((&chart.name, &chart.version)) {
                self.count_copy(chart)?;
            }
            let key = dependency.alias.as_ref().unwrap_or(&chart.name);
            let chart = HelmChart {
                key: key.clone(),
                condition: dependency.condition.clone(),
                ..chart.clone()
            };
            by_key.insert(key.clone(), chart);
        }
        for chart in charts {
            if !dependencies.iter().any(|other| other.name == chart.name) {
                by_key.insert(chart.key.clone(), chart);
            }
        }
        Ok(by_key.into_values().collect())
    }

    /// Counts a further copy of `chart` against all limits. Otherwise a few aliases at each level
    /// would multiply to any number of charts.
    fn count_copy(&mut self, chart: &HelmChart) -> Result<(), ChartError> {
        self.count_chart(&chart.file)?;
        let texts = chart.documents.iter().chain(&chart.helpers);
        let bytes = texts
            .map(|(file, text)| file.len() + text.len())
            .chain(chart.images.iter().map(String::len))
            .chain(chart.missing.iter().map(MissingDependency::text_bytes))
            .chain(chart.app_version.iter().map(String::len))
            .chain(chart.condition.iter().map(String::len))
            .chain([&chart.name, &chart.version, &chart.values_text].map(String::len))
            .sum::<usize>();
        self.archives
            .take(bytes as u64)
            .map_err(archive_error(&chart.file))?;
        // reading the values counts them against the budget for YAML
        read::<serde_yaml::Value>(&chart.values_file, &chart.values_text, &mut self.yaml)?;
        chart
            .subcharts
            .iter()
            .try_for_each(|subchart| self.count_copy(subchart))
    }

    fn count_chart(&mut self, at: &str) -> Result<(), ChartError> {
        let Some(charts) = self.charts.checked_sub(1) else {
            let limit = self.limits.charts_inside;
            return Err(Failure::usage(format!(
                "{at}: a chart with more than {limit} subcharts, counted with their aliases"
            ))
            .into());
        };
        self.charts = charts;
        Ok(())
    }
}

/// The chart of a dependency: the one with the exact version, or else the first one of that name.
fn dependency_chart<'c>(
    charts: &'c [HelmChart],
    dependency: &HelmDependency,
) -> Option<&'c HelmChart> {
    let version = plain(&dependency.version);
    let exact = charts
        .iter()
        .find(|chart| chart.name == dependency.name && Some(&chart.version) == version.as_ref());
    exact.or_else(|| charts.iter().find(|chart| chart.name == dependency.name))
}

/// The `dependencies` of the chart at `at` that are not among the `charts` in it.
fn missing_dependencies(
    at: &str,
    charts: &[HelmChart],
    dependencies: &[HelmDependency],
) -> Vec<MissingDependency> {
    let missing = dependencies
        .iter()
        .filter(|dependency| dependency_chart(charts, dependency).is_none());
    missing
        .map(|dependency| MissingDependency {
            path: format!("{at}/charts/{}", dependency.name),
            repository: plain(&dependency.repository).unwrap_or_default(),
            condition: dependency.condition.clone(),
            tags: dependency.tags(),
        })
        .collect()
}

/// Whether a file of this name in a chart is read for its references.
fn is_text(name: &str) -> bool {
    is_document(Path::new(name)) || name.ends_with(".tpl")
}

/// Decodes the content of a file and removes its byte order mark. Invalid UTF-8, which templates
/// may contain, is replaced.
fn decode_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_start_matches('\u{feff}')
        .to_owned()
}

// Collects the files of a chart in a folder: metadata, default values, templates, subcharts.

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

    /// Adds the documents and helpers in `dir` and below it. A link to a folder is not followed.
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
            } else if is_text(&name) && file_type(&path)?.is_some_and(|kind| kind.is_file()) {
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
    let found = if_exists(fs::metadata(path)).map_err(|error| cannot_open(path, error))?;
    Ok(found.map(|metadata| metadata.file_type()))
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
    pub(super) alias: Option<String>,
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

// Reads documents of charts as Helm does. Helm accepts repeated keys and several documents;
// landfall refuses both in its own documents.

/// Reads the document in `text` into `T`. The last value of a repeated key counts, and several
/// documents are merged. Booleans and numbers of YAML 1.1 are what they are for Helm.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    text: &str,
    budget: &mut YamlBudget,
) -> Result<T, Box<Diagnostic>> {
    let mut all = Json::Null;
    // the budget is charged first, because the tree of a text beyond the limits is large
    let merged = budget.charge(text).and_then(|()| {
        yaml::documents::<Json>(&in_yaml_1_2(text))
            .try_for_each(|document| document.map(|document| merge_over(&mut all, document)))
    });
    match merged {
        // an error of `from_value` has no position, so the text is read again to find it
        Ok(()) => serde_json::from_value(all).or_else(|_| document::read(file, text)),
        // `document::read` gives the error a position, but succeeds if only the shared budget is
        // exceeded
        Err(error) => match document::read::<IgnoredAny>(file, text) {
            Err(fault) => Err(fault),
            Ok(_) => {
                let file = file.to_owned();
                let text = text.to_owned();
                Err(Box::new(Diagnostic {
                    file,
                    text,
                    span: 0..0,
                    message: error.to_string(),
                    help: None,
                }))
            }
        },
    }
}

/// Merges the document `over` into `under`: mappings are merged, and any other value replaces the
/// old one. An empty document changes nothing.
fn merge_over(under: &mut Json, over: Json) {
    match (under, over) {
        (_, Json::Null) => {}
        (Json::Object(under), Json::Object(over)) => {
            for (key, value) in over {
                match under.get_mut(&key) {
                    Some(old) if old.is_object() && value.is_object() => merge_over(old, value),
                    _ => drop(under.insert(key, value)),
                }
            }
        }
        (under, over) => *under = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_may_have_as_many_subcharts_as_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        for chart in ["", "charts/a", "charts/a/charts/b"] {
            let folder = dir.path().join(chart);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("Chart.yaml"), "name: c\nversion: 1.0.0\n").unwrap();
        }
        let load = |charts_inside| {
            let limits = Limits {
                charts_inside,
                ..Limits::default()
            };
            HelmChart::load(dir.path(), &limits).map(drop)
        };
        let error = load(1).unwrap_err().to_string();
        assert!(
            error.contains(": a chart with more than 1 subcharts"),
            "{error}"
        );
        load(2).unwrap();
    }

    #[test]
    fn a_copy_of_a_chart_counts_the_texts_of_its_metadata() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(1000);
        let yaml = format!(
            "name: c\nversion: {long}\nappVersion: {long}\nannotations:\n  images: |\n    \
         - image: {long}\ndependencies:\n- name: gone\n  repository: {long}\n  \
         condition: {long}\n  tags: [{long}]\n"
        );
        fs::write(dir.path().join("Chart.yaml"), yaml).unwrap();
        let chart = HelmChart::load(dir.path(), &Limits::default()).unwrap();
        let count = |archive_bytes| {
            let limits = Limits {
                archive_bytes,
                ..Limits::default()
            };
            ChartLoader::new(&limits).count_copy(&chart)
        };
        let error = count(5999).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", chart.file)), "{error}");
        count(10_000).unwrap();
    }

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

    fn values(text: &str) -> String {
        read::<Json>("values.yaml", text, &mut YamlBudget::default())
            .map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn repeated_keys_and_several_documents_are_read_as_in_helm() {
        let comments = "# see [the docs\n".repeat(100) + &format!("# {}\n", "-".repeat(600));
        assert_eq!(values(&format!("{comments}a: 1\n")), "{\"a\":1}");
        assert_eq!(
            values("a: 1\nb: {c: 1, c: 2}\na: 3\n"),
            "{\"a\":3,\"b\":{\"c\":2}}"
        );
        assert_eq!(
            values("a: {b: 1}\nx: 1\n---\na: {c: 2}\nx: ~\n"),
            "{\"a\":{\"b\":1,\"c\":2},\"x\":null}"
        );
        assert_eq!(
            values("8080: x\ntrue: z\n"),
            "{\"8080\":\"x\",\"true\":\"z\"}"
        );
        assert_eq!(
            values("a: &a {b: 1}\nc: *a\n"),
            "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"
        );
    }

    #[test]
    fn invalid_yaml_is_refused_with_its_position() {
        assert!(
            values("a: 1\nb: [\n").starts_with("values.yaml:3:1: error:"),
            "{}",
            values("a: 1\nb: [\n")
        );
        assert!(values(&"[".repeat(100_000)).contains("nested deeper"));
        assert!(values(&"- ".repeat(50_000)).contains("nested deeper"));
    }
}
