//! Loads charts from folders and archives.

use super::error::ChartError;
use super::helm_chart::Chart;
use super::metadata::{Dependency, Metadata, Requirements};
use super::read::read;
use super::values::{plain, values_of};
use crate::document::{self, Files};
use crate::model::Limits;
use crate::rewrite::inputs::is_document;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

impl Chart {
    /// Reads the chart in the folder or archive at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no chart.
    pub(crate) fn load(path: &Path, limits: &Limits) -> Result<Chart, ChartError> {
        let shown = path.display().to_string();
        let open = |source| ChartError::Open { path: path.into(), source };
        let files = match fs::metadata(path).map_err(open)?.is_dir() {
            true => folder(path, limits)?,
            false => below_top(unarchived(&shown, &read_bounded(path, limits)?, limits)?),
        };
        Chart::new(&shown, files, limits, 0)
    }

    /// The chart in `archive`; `at` is what its files are told to be in.
    ///
    /// # Errors
    /// When it cannot be read or is no chart.
    pub(crate) fn of_archive(at: &str, archive: &[u8], limits: &Limits) -> Result<Chart, ChartError> {
        let files = below_top(unarchived(at, archive, limits)?);
        let name = files.get("Chart.yaml").and_then(|yaml| read::<Metadata>(at, &text(yaml)).ok());
        Chart::new(&name.map_or_else(|| at.to_owned(), |yaml| yaml.name), files, limits, 0)
    }

    /// The chart of these files; `at` says where they are.
    fn new(at: &str, mut files: Files, limits: &Limits, depth: usize) -> Result<Chart, ChartError> {
        if depth > limits.chart_depth {
            return Err(ChartError::Deep { path: at.into(), depth: limits.chart_depth });
        }
        let file = |name: &str| format!("{at}/{name}");
        let metadata = files.remove("Chart.yaml").ok_or_else(|| ChartError::NoChart(at.into()))?;
        let mut metadata: Metadata = read(&file("Chart.yaml"), &text(&metadata))?;
        if let Some(more) = files.remove("requirements.yaml") {
            let more: Option<Requirements> = read(&file("requirements.yaml"), &text(&more))?;
            metadata.dependencies.extend(more.unwrap_or_default().dependencies);
        }
        let values_text = text(&files.remove("values.yaml").unwrap_or_default());
        let values_file = file("values.yaml");
        let values = values_of(&values_file, &values_text)?;
        let is_other = |name: &str| !name.starts_with("charts/") && is_document(Path::new(name));
        let others = files.iter().filter(|(name, _)| is_other(name));
        let documents = others.map(|(name, content)| (file(name), text(content))).collect();
        let is_helper = |name: &&String| name.starts_with("templates/") && name.ends_with(".tpl");
        let helpers = files.keys().filter(is_helper).map(|name| (file(name), text(&files[name]))).collect();
        let found = subcharts(at, files, limits, depth)?;
        let images = metadata.images();
        Ok(Chart {
            key: metadata.name.clone(),
            name: metadata.name,
            version: plain(&metadata.version).unwrap_or_default(),
            app_version: plain(&metadata.app_version),
            condition: None,
            file: file("Chart.yaml"),
            images,
            helpers,
            values_file,
            values_text,
            values,
            documents,
            subcharts: wired(found, &metadata.dependencies),
        })
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

/// The files of a chart's folder that say something about images: metadata, defaults, subcharts, templates.
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
    for name in ["templates", "files"] {
        documents(&dir.join(name), &format!("{prefix}{name}/"), limits, files)?;
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
        } else if name.ends_with(".tgz") && path.is_file() {
            files.insert(below, read_bounded(&path, limits)?);
        }
    }
    if files.len() > limits.archive_files {
        return Err(ChartError::Large { path: charts, most: limits.archive_files as u64 });
    }
    Ok(())
}

/// Adds the documents in `dir` and below it. A link to a folder is not followed.
fn documents(dir: &Path, prefix: &str, limits: &Limits, files: &mut Files) -> Result<(), ChartError> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            documents(&path, &format!("{prefix}{name}/"), limits, files)?;
        } else if is_document(Path::new(name)) && path.is_file() {
            files.insert(format!("{prefix}{name}"), read_bounded(&path, limits)?);
        }
    }
    if files.len() > limits.archive_files {
        return Err(ChartError::Large { path: dir.into(), most: limits.archive_files as u64 });
    }
    Ok(())
}
