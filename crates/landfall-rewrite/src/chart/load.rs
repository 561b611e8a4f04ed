//! Loads charts from folders and archives.

use super::error::ChartError;
use super::helm_chart::Chart;
use super::metadata::{Dependency, Metadata, Requirements};
use super::read::read;
use super::values::{plain, values_within};
use crate::inputs::is_document;
use landfall_model::Limits;
use landfall_model::document::yaml::YamlBudget;
use landfall_model::document::{self, ArchiveBudget, Files, read_input};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

impl Chart {
    /// Reads the chart in the folder or archive at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no chart.
    pub fn load(path: &Path, limits: &Limits) -> Result<Chart, ChartError> {
        let shown = path.display().to_string();
        let open = |source| ChartError::Open {
            path: path.into(),
            source,
        };
        let mut loading = Loading::new(limits);
        let files = match fs::metadata(path).map_err(open)?.is_dir() {
            true => loading.folder(path)?,
            false => loading.unarchived(&shown, &read_bounded(path, limits)?)?,
        };
        loading.chart(&shown, files, 0)
    }

    /// The chart in `archive`; `at` is what its files are told to be in.
    ///
    /// # Errors
    /// When it cannot be read or is no chart.
    pub fn of_archive(at: &str, archive: &[u8], limits: &Limits) -> Result<Chart, ChartError> {
        let mut loading = Loading::new(limits);
        let files = loading.unarchived(at, archive)?;
        let yaml = files.get("Chart.yaml");
        let name = yaml
            .and_then(|yaml| read::<Metadata>(at, &text(yaml), &mut YamlBudget::default()).ok());
        loading.chart(
            &name.map_or_else(|| at.to_owned(), |yaml| yaml.name),
            files,
            0,
        )
    }
}

/// What a chart may still take to load, with all charts in it.
struct Loading<'l> {
    limits: &'l Limits,
    archives: ArchiveBudget,
    yaml: YamlBudget,
    charts: usize,
}

impl<'l> Loading<'l> {
    fn new(limits: &'l Limits) -> Loading<'l> {
        let (archives, yaml) = (ArchiveBudget::new(limits), YamlBudget::default());
        Loading {
            limits,
            archives,
            yaml,
            charts: limits.charts_inside,
        }
    }

    /// The files of an archived chart below its one folder.
    fn unarchived(&mut self, at: &str, bytes: &[u8]) -> Result<Files, ChartError> {
        let files =
            document::unpack(bytes, &mut self.archives).map_err(|source| ChartError::Archive {
                path: at.into(),
                source,
            })?;
        let below =
            |(name, content): (String, Vec<u8>)| Some((name.split_once('/')?.1.into(), content));
        Ok(files.into_iter().filter_map(below).collect())
    }

    /// The chart of these files; `at` says where they are.
    fn chart(&mut self, at: &str, mut files: Files, depth: usize) -> Result<Chart, ChartError> {
        let limits = self.limits;
        if depth > limits.chart_depth {
            return Err(ChartError::Deep {
                path: at.into(),
                depth: limits.chart_depth,
            });
        }
        self.one_more(at)?;
        let file = |name: &str| format!("{at}/{name}");
        let metadata = files
            .remove("Chart.yaml")
            .ok_or_else(|| ChartError::NoChart(at.into()))?;
        let mut metadata: Metadata = read(&file("Chart.yaml"), &text(&metadata), &mut self.yaml)?;
        if let Some(more) = files.remove("requirements.yaml") {
            let more: Option<Requirements> =
                read(&file("requirements.yaml"), &text(&more), &mut self.yaml)?;
            metadata
                .dependencies
                .extend(more.unwrap_or_default().dependencies);
        }
        let most = limits.chart_file_bytes;
        let large = files
            .iter()
            .find(|(name, content)| content.len() > most && is_text(name));
        if let Some((name, _)) = large {
            return Err(ChartError::Large {
                path: file(name).into(),
                most: most as u64,
            });
        }
        let values_text = text(&files.remove("values.yaml").unwrap_or_default());
        let values_file = file("values.yaml");
        let values = values_within(&values_file, &values_text, &mut self.yaml)?;
        let is_other = |name: &str| !name.starts_with("charts/") && is_document(Path::new(name));
        let others = files.iter().filter(|(name, _)| is_other(name));
        let documents = others
            .map(|(name, content)| (file(name), text(content)))
            .collect();
        let is_helper = |name: &&String| name.starts_with("templates/") && name.ends_with(".tpl");
        let helpers = files
            .keys()
            .filter(is_helper)
            .map(|name| (file(name), text(&files[name])))
            .collect();
        let found = self.subcharts(at, files, depth)?;
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
            subcharts: self.wired(found, &metadata.dependencies)?,
        })
    }

    /// The charts in `charts/`: folders and archives, apart from those whose name begins with `_`
    /// or `.`.
    fn subcharts(
        &mut self,
        at: &str,
        files: Files,
        depth: usize,
    ) -> Result<Vec<Chart>, ChartError> {
        let mut folders: BTreeMap<String, Files> = BTreeMap::new();
        let mut charts = Vec::new();
        for (name, content) in files {
            let Some(name) = name
                .strip_prefix("charts/")
                .filter(|name| !name.starts_with(['_', '.']))
            else {
                continue;
            };
            match name.split_once('/') {
                Some((folder, rest)) => {
                    folders
                        .entry(folder.into())
                        .or_default()
                        .insert(rest.into(), content);
                }
                None if name.ends_with(".tgz") => {
                    let at = format!("{at}/charts/{name}");
                    let files = self.unarchived(&at, &content)?;
                    charts.push(self.chart(&at, files, depth + 1)?);
                }
                None => {}
            }
        }
        // a folder without a Chart.yaml is no chart, and Helm passes over it
        for (folder, files) in folders
            .into_iter()
            .filter(|(_, files)| files.contains_key("Chart.yaml"))
        {
            charts.push(self.chart(&format!("{at}/charts/{folder}"), files, depth + 1)?);
        }
        Ok(charts)
    }

    /// The charts under the keys that the dependencies give them. A chart that no dependency names
    /// counts under its own name; one that several name, under several.
    fn wired(
        &mut self,
        found: Vec<Chart>,
        dependencies: &[Dependency],
    ) -> Result<Vec<Chart>, ChartError> {
        let mut wired: BTreeMap<String, Chart> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for dependency in dependencies {
            let version = plain(&dependency.version);
            let named = || found.iter().filter(|chart| chart.name == dependency.name);
            let exact = named().find(|chart| Some(&chart.version) == version.as_ref());
            if let Some(chart) = exact.or_else(|| named().next()) {
                let key = dependency
                    .alias
                    .clone()
                    .unwrap_or_else(|| chart.name.clone());
                let condition = dependency.condition.clone();
                if !used.insert((&chart.name, &chart.version)) {
                    self.copy(chart)?;
                }
                wired.insert(
                    key.clone(),
                    Chart {
                        key,
                        condition,
                        ..chart.clone()
                    },
                );
            }
        }
        let rest = found
            .into_iter()
            .filter(|chart| !dependencies.iter().any(|one| one.name == chart.name));
        for chart in rest {
            wired.insert(chart.key.clone(), chart);
        }
        Ok(wired.into_values().collect())
    }

    /// Takes what a further copy of `chart` needs: each alias is a chart of its own.
    fn copy(&mut self, chart: &Chart) -> Result<(), ChartError> {
        self.one_more(&chart.file)?;
        let texts = chart
            .documents
            .iter()
            .chain(&chart.helpers)
            .map(|(_, text)| text.len());
        let bytes = texts.sum::<usize>() + chart.values_text.len();
        let large = |source| ChartError::Archive {
            path: chart.file.clone(),
            source,
        };
        self.archives.take(bytes as u64).map_err(large)?;
        read::<serde_yaml::Value>(&chart.values_file, &chart.values_text, &mut self.yaml)?;
        chart
            .subcharts
            .iter()
            .try_for_each(|inside| self.copy(inside))
    }

    fn one_more(&mut self, at: &str) -> Result<(), ChartError> {
        let many = || ChartError::Many {
            path: at.into(),
            most: self.limits.charts_inside,
        };
        self.charts = self.charts.checked_sub(1).ok_or_else(many)?;
        Ok(())
    }

    /// The files of a chart's folder that say something about images: metadata, defaults,
    /// subcharts, templates.
    fn folder(&mut self, path: &Path) -> Result<Files, ChartError> {
        let mut files = Files::new();
        self.collect(path, "", &mut files)?;
        Ok(files)
    }

    fn collect(&mut self, dir: &Path, prefix: &str, files: &mut Files) -> Result<(), ChartError> {
        const WANTED: [&str; 3] = ["Chart.yaml", "values.yaml", "requirements.yaml"];
        for name in WANTED {
            let path = dir.join(name);
            if path.is_file() {
                self.add(&path, format!("{prefix}{name}"), files)?;
            }
        }
        for name in ["templates", "files"] {
            self.documents(&dir.join(name), &format!("{prefix}{name}/"), files)?;
        }
        let charts = dir.join("charts");
        if !charts.is_dir() {
            return Ok(());
        }
        // links may lead round in circles
        if prefix.matches("charts/").count() > self.limits.chart_depth {
            return Err(ChartError::Deep {
                path: charts.display().to_string(),
                depth: self.limits.chart_depth,
            });
        }
        let open = |source| ChartError::Open {
            path: charts.clone(),
            source,
        };
        for entry in fs::read_dir(&charts).map_err(open)? {
            let path = entry.map_err(open)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let below = format!("{prefix}charts/{name}");
            if path.is_dir() {
                self.collect(&path, &format!("{below}/"), files)?;
            } else if name.ends_with(".tgz") && path.is_file() {
                self.add(&path, below, files)?;
            }
        }
        if files.len() > self.limits.archive_files {
            return Err(ChartError::Large {
                path: charts,
                most: self.limits.archive_files as u64,
            });
        }
        Ok(())
    }

    /// Adds the documents in `dir` and below it. A link to a folder is not followed.
    fn documents(&mut self, dir: &Path, prefix: &str, files: &mut Files) -> Result<(), ChartError> {
        let Ok(entries) = fs::read_dir(dir) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else { continue };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.documents(&path, &format!("{prefix}{name}/"), files)?;
            } else if is_document(Path::new(name)) && path.is_file() {
                self.add(&path, format!("{prefix}{name}"), files)?;
            }
        }
        if files.len() > self.limits.archive_files {
            return Err(ChartError::Large {
                path: dir.into(),
                most: self.limits.archive_files as u64,
            });
        }
        Ok(())
    }

    /// Adds the content of the file at `path`, called `name`.
    fn add(&mut self, path: &Path, name: String, files: &mut Files) -> Result<(), ChartError> {
        let content = read_bounded(path, self.limits)?;
        let large = |source| ChartError::Archive {
            path: path.display().to_string(),
            source,
        };
        self.archives.take(content.len() as u64).map_err(large)?;
        files.insert(name, content);
        Ok(())
    }
}

/// Whether a file of a chart is read for its references, by its name.
fn is_text(name: &str) -> bool {
    is_document(Path::new(name)) || name.ends_with(".tpl")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_start_matches('\u{feff}')
        .to_owned()
}

fn read_bounded(path: &Path, limits: &Limits) -> Result<Vec<u8>, ChartError> {
    let open = |source| ChartError::Open {
        path: path.into(),
        source,
    };
    if fs::metadata(path).map_err(open)?.len() > limits.archive_bytes {
        return Err(ChartError::Large {
            path: path.into(),
            most: limits.archive_bytes,
        });
    }
    read_input(path).map_err(open)
}
