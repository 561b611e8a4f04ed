//! Chart.yaml of an archive: what a chart says of itself, and what it depends on and does not contain.

use crate::document::{self, Files};
use crate::model::Limits;
use serde::Deserialize;
use serde_yaml::Value;

/// Chart.yaml, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChartYaml {
    #[serde(default)]
    pub api_version: String,
    pub name: String,
    #[serde(default)]
    pub version: Value,
    #[serde(default)]
    pub app_version: Value,
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
}

/// A dependency as Chart.yaml has it, or requirements.yaml of charts for Helm 2.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub repository: String,
}

#[derive(Default, Deserialize)]
struct Dependencies {
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// A chart's files by their path below its one folder.
///
/// # Errors
/// What is wrong with the archive.
pub(crate) fn files_of(archive: &[u8], limits: &Limits) -> Result<Files, String> {
    let files = document::unpack(archive, limits).map_err(|error| format!("its archive: {error}"))?;
    let below = |(name, content): (String, Vec<u8>)| Some((name.split_once('/')?.1.to_owned(), content));
    Ok(files.into_iter().filter_map(below).collect())
}

/// The text of a scalar.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What the chart says of itself.
///
/// # Errors
/// When it does not say it.
pub(crate) fn chart_yaml(files: &Files) -> Result<ChartYaml, String> {
    let content = files.get("Chart.yaml").ok_or("its archive holds no Chart.yaml")?;
    read("Chart.yaml", content)
}

fn read<T: serde::de::DeserializeOwned>(name: &str, content: &[u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(content);
    let text = text.trim_start_matches('\u{feff}');
    document::read(name, text).map_err(|error| format!("its {name} cannot be read: {}", error.message))
}

/// What the chart and the charts in it depend on and do not contain, each with the version that the chart's own lock
/// (Chart.lock) gives it.
///
/// # Errors
/// What cannot be read.
pub(super) fn lacking(files: &Files, limits: &Limits) -> Result<Vec<Dependency>, String> {
    let mut all = Vec::new();
    collect(files, limits, 0, &mut all)?;
    Ok(all)
}

fn collect(files: &Files, limits: &Limits, depth: usize, all: &mut Vec<Dependency>) -> Result<(), String> {
    if depth > limits.chart_depth {
        return Err(format!("charts are nested deeper than {} in it", limits.chart_depth));
    }
    let inside = subcharts(files, limits)?;
    let mut wanted = chart_yaml(files)?.dependencies;
    let (mut locked, add) = (Vec::new(), |name: &str, to: &mut Vec<Dependency>| {
        if let Some(content) = files.get(name) {
            to.extend(read::<Option<Dependencies>>(name, content)?.unwrap_or_default().dependencies);
        }
        Ok::<(), String>(())
    });
    add("requirements.yaml", &mut wanted)?;
    add("Chart.lock", &mut locked)?;
    add("requirements.lock", &mut locked)?;
    let mut names = Vec::new();
    for chart in &inside {
        names.push(chart_yaml(chart)?.name);
        collect(chart, limits, depth + 1, all)?;
    }
    for dependency in wanted.into_iter().filter(|one| !names.contains(&one.name)) {
        let is_it =
            |one: &&Dependency| one.name == dependency.name && one.repository == dependency.repository;
        let dependency = locked.iter().find(is_it).cloned().unwrap_or(dependency);
        if !all.contains(&dependency) {
            all.push(dependency);
        }
    }
    Ok(())
}

/// The files of each chart in `charts/`.
fn subcharts(files: &Files, limits: &Limits) -> Result<Vec<Files>, String> {
    let mut folders = std::collections::BTreeMap::<&str, Files>::new();
    let mut all = Vec::new();
    for (name, content) in files {
        let Some(below) = name.strip_prefix("charts/").filter(|below| !below.starts_with(['_', '.'])) else {
            continue;
        };
        match below.split_once('/') {
            Some((folder, rest)) => {
                folders.entry(folder).or_default().insert(rest.to_owned(), content.clone());
            }
            None if below.ends_with(".tgz") => all.push(files_of(content, limits)?),
            None => {}
        }
    }
    // a folder without a Chart.yaml is no chart, and Helm passes over it
    all.extend(folders.into_values().filter(|folder| folder.contains_key("Chart.yaml")));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(of: &[(&str, &str)]) -> Files {
        of.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn what_is_not_in_charts_is_lacking_at_any_depth() {
        let chart = files(&[
            (
                "Chart.yaml",
                "name: a\nversion: 1.0.0\ndependencies:\n- {name: b, version: 1.x, repository: 'https://r'}\n- {name: in, version: '1'}",
            ),
            ("Chart.lock", "dependencies: [{name: b, version: 1.4.2, repository: 'https://r'}]\ndigest: x\n"),
            (
                "charts/in/Chart.yaml",
                "name: in\ndependencies: [{name: c, version: ^2, repository: 'oci://q/r'}]",
            ),
            ("charts/in/requirements.yaml", "dependencies:\n- {name: d, version: '3', repository: '@x'}\n"),
            ("charts/none/values.yaml", "a: 1"),
        ]);
        let found = lacking(&chart, &Limits::default()).unwrap();
        let found: Vec<_> = found.iter().map(|one| (&*one.name, &*one.version, &*one.repository)).collect();
        assert_eq!(found, [("c", "^2", "oci://q/r"), ("d", "3", "@x"), ("b", "1.4.2", "https://r")]);
    }
}
