//! Loads charts from folders and archives.

use super::chart_folder::{
    HelmDependency, HelmMetadata, HelmRequirements, archive_error, collect_chart_files,
    read_limited, too_deep, too_large,
};
use super::helm_chart::{HelmChart, MissingDependency};
use super::read::read;
use super::values::{plain, values_within};
use crate::error::ChartError;
use crate::inputs::is_document;
use landfall_model::document::yaml::YamlBudget;
use landfall_model::document::{
    ArchiveBudget, BundledChart, UnpackedFiles, bundled_charts, unpack_chart,
};
use landfall_model::{Failure, Limits};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

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
}
