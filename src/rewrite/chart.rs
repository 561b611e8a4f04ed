//! Helm charts as they lie on disk, folder or `.tgz`, without helm: metadata, defaults, subcharts.
//!
//! What is followed is Helm's loader and its `ProcessDependencies` and `CoalesceValues`: subcharts are
//! folders and archives in `charts/`, a dependency may give one an alias, and a parent's values win over
//! a subchart's.

use super::inputs::is_document;
use crate::document::{self, ArchiveError, Diagnostic, Files, Node, line_column};
use crate::model::Limits;
use serde::Deserialize;
use serde_yaml::{Mapping, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A chart with its subcharts.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its name in Chart.yaml.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `appVersion`: what most charts take as the tag where their values name none.
    pub app_version: Option<String>,
    /// The key of its values in its parent's: its alias, or its name.
    pub key: String,
    /// The `condition` of the dependency: paths in the parent's values, comma-separated.
    condition: Option<String>,
    /// The file of its defaults, for messages.
    values_file: String,
    /// The text of its defaults.
    values_text: String,
    values: Mapping,
    /// Its other documents, where it is an archive: name and text. In a folder they are files of their own.
    documents: Vec<(String, String)>,
    /// Its subcharts, in the order of their keys.
    pub subcharts: Vec<Chart>,
}

/// Why a chart cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// An archive cannot be read.
    #[error("{path}: {source}")]
    Archive {
        /// The archive, and inside of which one it is.
        path: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// It has no Chart.yaml.
    #[error("{0} is no chart: it has no Chart.yaml; name a chart's folder or its .tgz")]
    NoChart(String),
    /// Charts in charts in charts.
    #[error("{path}: charts are nested deeper than {depth}")]
    Deep {
        /// The innermost that was looked at.
        path: String,
        /// The bound.
        depth: usize,
    },
    /// A file of it is larger than is read.
    #[error("{path} has more than {most} bytes or files in it, which no chart has")]
    Large {
        /// The path.
        path: PathBuf,
        /// The bound.
        most: u64,
    },
    /// A document of it is no YAML, or not what it should be.
    #[error(transparent)]
    Document(#[from] Box<Diagnostic>),
}

/// Chart.yaml, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    app_version: Value,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// requirements.yaml of charts for Helm 2.
#[derive(Default, Deserialize)]
struct Requirements {
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    alias: Option<String>,
    #[serde(default)]
    condition: Option<String>,
}

impl Chart {
    /// Reads the chart in the folder or archive at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no chart.
    pub fn load(path: &Path, limits: &Limits) -> Result<Chart, ChartError> {
        let shown = path.display().to_string();
        let open = |source| ChartError::Open { path: path.into(), source };
        let files = match fs::metadata(path).map_err(open)?.is_dir() {
            true => folder(path, limits)?,
            false => below_top(unarchived(&shown, &read_bounded(path, limits)?, limits)?),
        };
        Chart::new(&shown, files, limits, 0)
    }

    /// The chart of these files; `at` says where they are.
    fn new(at: &str, mut files: Files, limits: &Limits, depth: usize) -> Result<Chart, ChartError> {
        if depth > limits.chart_depth {
            return Err(ChartError::Deep { path: at.into(), depth: limits.chart_depth });
        }
        let file = |name: &str| format!("{at}/{name}");
        let metadata = files.remove("Chart.yaml").ok_or_else(|| ChartError::NoChart(at.into()))?;
        let mut metadata: Metadata = document::read(&file("Chart.yaml"), &text(&metadata))?;
        if let Some(more) = files.remove("requirements.yaml") {
            let more: Option<Requirements> = document::read(&file("requirements.yaml"), &text(&more))?;
            metadata.dependencies.extend(more.unwrap_or_default().dependencies);
        }
        let values_text = text(&files.remove("values.yaml").unwrap_or_default());
        let values_file = file("values.yaml");
        let values = values_of(&values_file, &values_text)?;
        let is_other = |name: &str| !name.starts_with("charts/") && is_document(Path::new(name));
        let others = files.iter().filter(|(name, _)| is_other(name));
        let documents = others.map(|(name, content)| (file(name), text(content))).collect();
        let found = subcharts(at, files, limits, depth)?;
        Ok(Chart {
            key: metadata.name.clone(),
            name: metadata.name,
            version: plain(&metadata.version).unwrap_or_default(),
            app_version: plain(&metadata.app_version),
            condition: None,
            values_file,
            values_text,
            values,
            documents,
            subcharts: wired(found, &metadata.dependencies),
        })
    }

    /// Its defaults with those of its subcharts under their keys, as Helm puts them together, and with
    /// `over` laid over them.
    pub fn effective(&self, over: &Mapping) -> Mapping {
        let mut values = over.clone();
        coalesce(&mut values, &self.values);
        for chart in &self.subcharts {
            let mut own = match values.get(&chart.key) {
                Some(Value::Mapping(own)) => own.clone(),
                None | Some(Value::Null) => Mapping::new(),
                // Helm refuses this; what it says about images is nothing
                Some(_) => continue,
            };
            own = chart.effective(&own);
            values.insert(chart.key.as_str().into(), own.into());
        }
        values
    }

    /// The condition by which `values`, its effective ones, switch off the subchart that `path` leads into.
    pub fn off(&self, path: &[String], values: &Mapping) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
        chart.is_off(values).or_else(|| chart.off(rest, values.get(first)?.as_mapping()?))
    }

    /// The condition that the values of its parent make `false`: the first that they have counts.
    fn is_off(&self, parent: &Mapping) -> Option<&str> {
        let at = |path: &str| {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let rest = rest.split('.').filter(|key| !key.is_empty());
            rest.fold(parent.get(first), |value, key| value?.get(key))?.as_bool()
        };
        let conditions = self.condition.as_deref()?.split(',').map(str::trim);
        conditions
            .filter_map(|path| Some((path, at(path)?)))
            .next()
            .filter(|(_, on)| !on)
            .map(|(path, _)| path)
    }

    /// Its documents and those of its subcharts that are not values, where they are in archives.
    pub fn documents(&self) -> Vec<&(String, String)> {
        let below = self.subcharts.iter().flat_map(Chart::documents);
        self.documents.iter().chain(below).collect()
    }

    /// Where the values file, or that of a subchart, says what stands at `path`: file, line and column.
    /// Where it does not stand in so many words, the place of what it would stand in.
    pub fn place(&self, path: &[String]) -> (String, usize, usize) {
        let root = Node::parse(&self.values_text).unwrap_or_default();
        let (mut node, mut depth) = (&root, 0);
        for key in path {
            if node.key_span(key).is_none() {
                break;
            }
            (node, depth) = (node.get(key), depth + 1);
        }
        let below = path.split_first().and_then(|(first, rest)| {
            let chart = self.subcharts.iter().find(|chart| chart.key == *first)?;
            (depth < path.len()).then(|| chart.place(rest))
        });
        below.unwrap_or_else(|| {
            let (line, column) = line_column(&self.values_text, node.span().start);
            (self.values_file.clone(), line, column)
        })
    }
}

/// Lays `over` over `under`, as Helm does: mappings are merged, a null takes the default away.
pub fn coalesce(over: &mut Mapping, under: &Mapping) {
    for (key, default) in under {
        match (over.get_mut(key), default) {
            (None, _) => drop(over.insert(key.clone(), default.clone())),
            (Some(Value::Mapping(over)), Value::Mapping(under)) => coalesce(over, under),
            _ => {}
        }
    }
}

/// The values in `text`, with merge keys applied.
pub fn values_of(file: &str, text: &str) -> Result<Mapping, Box<Diagnostic>> {
    let fault = |message: String| Diagnostic {
        file: file.into(),
        text: text.into(),
        span: 0..0,
        message,
        help: Some("values are one YAML mapping".into()),
    };
    let mut values: Value = document::read(file, text)?;
    values.apply_merge().map_err(|error| fault(error.to_string()))?;
    match values {
        Value::Mapping(values) => Ok(values),
        Value::Null => Ok(Mapping::new()),
        _ => Err(Box::new(fault("these are no values of a chart".into()))),
    }
}

/// The charts in `charts/`: folders and archives, apart from those whose name begins with `_` or `.`.
fn subcharts(at: &str, files: Files, limits: &Limits, depth: usize) -> Result<Vec<Chart>, ChartError> {
    let mut folders: BTreeMap<String, Files> = BTreeMap::new();
    let mut charts = Vec::new();
    for (name, content) in files {
        let Some(name) = name.strip_prefix("charts/").filter(|name| !name.starts_with(['_', '.'])) else {
            continue;
        };
        match name.split_once('/') {
            Some((folder, rest)) => {
                folders.entry(folder.into()).or_default().insert(rest.into(), content);
            }
            None if name.ends_with(".tgz") => {
                let at = format!("{at}/charts/{name}");
                let files = below_top(unarchived(&at, &content, limits)?);
                charts.push(Chart::new(&at, files, limits, depth + 1)?);
            }
            None => {}
        }
    }
    // a folder without a Chart.yaml is no chart, and Helm passes over it
    for (folder, files) in folders.into_iter().filter(|(_, files)| files.contains_key("Chart.yaml")) {
        charts.push(Chart::new(&format!("{at}/charts/{folder}"), files, limits, depth + 1)?);
    }
    Ok(charts)
}

/// The charts under the keys that the dependencies give them. A chart that no dependency names counts
/// under its own name; one that several name, under several.
fn wired(found: Vec<Chart>, dependencies: &[Dependency]) -> Vec<Chart> {
    let mut wired: BTreeMap<String, Chart> = BTreeMap::new();
    for dependency in dependencies {
        let version = plain(&dependency.version);
        let named = || found.iter().filter(|chart| chart.name == dependency.name);
        let exact = named().find(|chart| Some(&chart.version) == version.as_ref());
        if let Some(chart) = exact.or_else(|| named().next()) {
            let key = dependency.alias.clone().unwrap_or_else(|| chart.name.clone());
            let condition = dependency.condition.clone();
            wired.insert(key.clone(), Chart { key, condition, ..chart.clone() });
        }
    }
    let rest = found.into_iter().filter(|chart| !dependencies.iter().any(|one| one.name == chart.name));
    for chart in rest {
        wired.insert(chart.key.clone(), chart);
    }
    wired.into_values().collect()
}

/// The text of a scalar; `None` for null and what is no scalar.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').to_owned()
}

fn unarchived(at: &str, bytes: &[u8], limits: &Limits) -> Result<Files, ChartError> {
    document::unpack(bytes, limits).map_err(|source| ChartError::Archive { path: at.into(), source })
}

/// The files of an archived chart below its one folder.
fn below_top(files: Files) -> Files {
    files.into_iter().filter_map(|(name, content)| Some((name.split_once('/')?.1.into(), content))).collect()
}

fn read_bounded(path: &Path, limits: &Limits) -> Result<Vec<u8>, ChartError> {
    let open = |source| ChartError::Open { path: path.into(), source };
    if fs::metadata(path).map_err(open)?.len() > limits.archive_bytes {
        return Err(ChartError::Large { path: path.into(), most: limits.archive_bytes });
    }
    fs::read(path).map_err(open)
}

/// The files of a chart's folder that say something about images: metadata, defaults, subcharts.
fn folder(path: &Path, limits: &Limits) -> Result<Files, ChartError> {
    let mut files = Files::new();
    collect(path, "", limits, &mut files)?;
    Ok(files)
}

fn collect(dir: &Path, prefix: &str, limits: &Limits, files: &mut Files) -> Result<(), ChartError> {
    const WANTED: [&str; 3] = ["Chart.yaml", "values.yaml", "requirements.yaml"];
    for name in WANTED {
        let path = dir.join(name);
        if path.is_file() {
            files.insert(format!("{prefix}{name}"), read_bounded(&path, limits)?);
        }
    }
    let charts = dir.join("charts");
    if !charts.is_dir() {
        return Ok(());
    }
    // links may lead round in circles
    if prefix.matches("charts/").count() > limits.chart_depth {
        return Err(ChartError::Deep { path: charts.display().to_string(), depth: limits.chart_depth });
    }
    let open = |source| ChartError::Open { path: charts.clone(), source };
    for entry in fs::read_dir(&charts).map_err(open)? {
        let path = entry.map_err(open)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let below = format!("{prefix}charts/{name}");
        if path.is_dir() {
            collect(&path, &format!("{below}/"), limits, files)?;
        } else if name.ends_with(".tgz") {
            files.insert(below, read_bounded(&path, limits)?);
        }
    }
    if files.len() > limits.archive_files {
        return Err(ChartError::Large { path: charts, most: limits.archive_files as u64 });
    }
    Ok(())
}
