//! Reads Chart.yaml in the archive of a chart, and finds the dependencies that the archive does not
//! bundle.

use super::name::ChartName;
use super::repository;
use super::schema::schema_urls;
use crate::resolver::{ResolveError, Resolver};
use landfall_model::document::{
    self, ArchiveBudget, BundledChart, UnpackedFiles, bundled_charts, unpack_chart, yaml,
};
use landfall_model::{ChartVersion, ChartVersionRange, ImageRef, Limits, is_web_url, local_path};
use serde::{Deserialize, Deserializer};
use serde_yaml::Value;
use std::collections::{BTreeSet, HashMap};

/// The fields of Chart.yaml that landfall uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChartYaml {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub api_version: String,
    pub name: String,
    #[serde(default)]
    pub version: Value,
    #[serde(default)]
    pub app_version: Value,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub dependencies: Vec<ChartDependency>,
}

/// A dependency in Chart.yaml, or in the requirements.yaml of charts for Helm 2.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ChartDependency {
    pub name: String,
    #[serde(default, deserialize_with = "scalar_text")]
    pub version: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    pub repository: String,
}

#[derive(Default, Deserialize)]
struct RequirementsYaml {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    dependencies: Vec<ChartDependency>,
}

/// Unpacks a chart. Returns its files by their paths below its top-level folder.
pub(super) fn files_of(
    archive: &[u8],
    budget: &mut ArchiveBudget,
) -> Result<UnpackedFiles, String> {
    unpack_chart(archive, budget).map_err(|error| format!("its archive: {error}"))
}

/// The text of a YAML scalar. Helm accepts numbers as versions.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Deserializes a version, which may be written as a number.
fn scalar_text<'de, D: Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    Ok(plain(&Value::deserialize(source)?).unwrap_or_default())
}

/// Parses the Chart.yaml of an unpacked chart.
pub(super) fn chart_yaml(files: &UnpackedFiles) -> Result<ChartYaml, String> {
    let content = files
        .get("Chart.yaml")
        .ok_or("its archive contains no Chart.yaml")?;
    read("Chart.yaml", content)
}

/// Parses a YAML file of the chart.
fn read<T: serde::de::DeserializeOwned>(name: &str, content: &[u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(content);
    let text = text.trim_start_matches('\u{feff}');
    document::read(name, text).or_else(|error| {
        // Helm accepts a repeated key, whose last value counts
        let value = yaml::from_str::<serde_json::Value>(text).ok();
        value
            .and_then(|value| serde_json::from_value(value).ok())
            .ok_or_else(|| format!("its {name} cannot be read: {}", error.message))
    })
}

/// What a chart needs from elsewhere, and the charts bundled in it need too.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OutsideNeeds {
    /// The dependencies that are not bundled. If a chart's Chart.lock or requirements.lock lists a
    /// dependency, the version is that in the file.
    pub(super) dependencies: Vec<ChartDependency>,
    /// The URLs to which `values.schema.json` refers, each with the name of its chart. Helm
    /// requests them when it validates values.
    pub(super) schemas: BTreeSet<(String, String)>,
}

/// Finds what the chart with these files needs from elsewhere.
pub(super) fn outside_needs(
    files: UnpackedFiles,
    budget: &mut ArchiveBudget,
    limits: &Limits,
) -> Result<OutsideNeeds, String> {
    let mut search = DependencySearch {
        budget,
        limits,
        charts: 0,
        needs: OutsideNeeds::default(),
    };
    search.collect(files, 0)?;
    Ok(search.needs)
}

/// A search for unbundled dependencies, through a chart and the charts bundled in it.
struct DependencySearch<'s> {
    /// The size to which all bundled archives together may still unpack.
    budget: &'s mut ArchiveBudget,
    limits: &'s Limits,
    /// The number of bundled charts that were read.
    charts: usize,
    needs: OutsideNeeds,
}

impl DependencySearch<'_> {
    /// Collects the unbundled dependencies of the chart with these files. Returns the chart's name.
    fn collect(&mut self, files: UnpackedFiles, depth: usize) -> Result<String, String> {
        let Limits {
            chart_depth,
            charts_inside,
            ..
        } = *self.limits;
        if depth > chart_depth {
            return Err(format!(
                "it contains charts that are nested deeper than {chart_depth}"
            ));
        }
        if depth > 0 {
            self.charts += 1;
        }
        if self.charts > charts_inside {
            return Err(format!("it contains more than {charts_inside} charts"));
        }
        let ChartYaml {
            name,
            mut dependencies,
            ..
        } = chart_yaml(&files)?;
        // charts for Helm 2 list dependencies in a separate file
        dependencies.extend(listed_dependencies(&files, "requirements.yaml")?);
        let mut locked = listed_dependencies(&files, "Chart.lock")?;
        locked.extend(listed_dependencies(&files, "requirements.lock")?);
        // the first entry for a chart applies
        let mut exact: HashMap<[String; 2], ChartDependency> = HashMap::new();
        for one in locked {
            let key = [one.name.clone(), one.repository.clone()];
            exact.entry(key).or_insert(one);
        }
        if let Some(schema) = files.get("values.schema.json") {
            let urls = schema_urls(&String::from_utf8_lossy(schema)).into_iter();
            self.needs
                .schemas
                .extend(urls.map(|url| (name.clone(), url)));
        }
        let mut bundled = BTreeSet::new();
        for (_, chart) in bundled_charts(files) {
            let files = match chart {
                BundledChart::Folder(files) => files,
                BundledChart::Archive(bytes) => files_of(&bytes, self.budget)?,
            };
            bundled.insert(self.collect(files, depth + 1)?);
        }
        for dependency in dependencies {
            if bundled.contains(&dependency.name) {
                continue;
            }
            // Chart.yaml may have a range of versions; Chart.lock has an exact one
            let key = [dependency.name.clone(), dependency.repository.clone()];
            let dependency = exact.get(&key).cloned().unwrap_or(dependency);
            if !self.needs.dependencies.contains(&dependency) {
                self.needs.dependencies.push(dependency);
            }
            if self.needs.dependencies.len() > charts_inside {
                return Err(format!("it depends on more than {charts_inside} charts"));
            }
        }
        Ok(name)
    }
}

/// The dependencies that the file `name` of a chart lists. Empty if the chart does not have it.
fn listed_dependencies(files: &UnpackedFiles, name: &str) -> Result<Vec<ChartDependency>, String> {
    let Some(content) = files.get(name) else {
        return Ok(Vec::new());
    };
    // an empty file is null in YAML
    let list: Option<RequirementsYaml> = read(name, content)?;
    Ok(list.unwrap_or_default().dependencies)
}

/// Resolves the dependencies `missing`, which the chart does not bundle; the result is sorted.
/// `source` is the repository URL of the chart that needs them. A repository that neither
/// the manifest nor the site names is queried without credentials.
pub(super) async fn resolve(
    resolver: &Resolver,
    missing: &[ChartDependency],
    source: &str,
) -> Result<Vec<ChartName>, ResolveError> {
    let limit = resolver.limits().chart_dependencies;
    if missing.len() > limit {
        return Err(
            format!("it depends on more than {limit} charts that it does not contain").into(),
        );
    }
    let mut found = Vec::new();
    for dependency in missing {
        let ChartDependency {
            name,
            version,
            repository,
        } = dependency;
        let newest = newest(resolver, dependency, source).await;
        found.push(newest.map_err(|cause| ResolveError {
            // the chart itself still exists, even if its dependency does not
            is_gone: false,
            ..cause.about(&format!(
                "its dependency {name} {version} of '{repository}'"
            ))
        })?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The newest version in the range of a dependency.
async fn newest(
    resolver: &Resolver,
    dependency: &ChartDependency,
    source: &str,
) -> Result<ChartName, ResolveError> {
    let ChartDependency {
        name,
        version,
        repository,
    } = dependency;
    // a missing version means any version
    let range: ChartVersionRange = if version.is_empty() {
        "*"
    } else {
        version.as_str()
    }
    .parse()
    .map_err(|()| "its version is not a range of versions".to_owned())?;
    let url = repository.trim_end_matches('/');
    let oci = url.strip_prefix("oci://");
    // a chart next to the manifest belongs to the user, who may name any host
    if local_path(source).is_none() && (oci.is_some() || is_web_url(url)) {
        resolver.sessions.check_named_target(url, source).await?;
    }
    let versions: Vec<String> = match oci {
        Some(path) => {
            let image: ImageRef = format!("{path}/{name}")
                .parse()
                .map_err(|_| "its repository is not a registry")?;
            let resolver = resolver.for_dependency_at(url, &image.registry);
            match resolver.all_tags(&image).await {
                // tags cannot contain the `+` of a version
                Ok(Some(tags)) => tags.iter().map(|tag| tag.replace('_', "+")).collect(),
                // no list is needed to request one version
                _ if version.parse::<ChartVersion>().is_ok() => vec![version.clone()],
                Ok(None) => {
                    let why =
                        format!("{image}: its registry does not list its versions, or too many");
                    return Err(why.into());
                }
                Err(error) => return Err(error),
            }
        }
        None if is_web_url(url) => {
            // only repository and host are used here, so the version is a placeholder
            let like = ChartName::in_repository(url, name, "0.0.0")?;
            let resolver =
                resolver.for_dependency_at(&like.repository_url(), &like.reference.registry);
            repository::versions(resolver, url, name).await?
        }
        // an empty repository, an alias as in `@stable`, or a path as in `file://../common`
        None => {
            let why = "it is not in the archive, and its repository is not a URL; `helm dependency \
                       build` puts it into the chart";
            return Err(why.into());
        }
    };
    let newest = versions
        .iter()
        .filter_map(|text| Some((text.parse::<ChartVersion>().ok()?, text)))
        .filter(|(version, _)| range.has(version))
        .max_by(|a, b| a.0.cmp(&b.0));
    let (_, version) = newest.ok_or("its repository has no version in this range")?;
    let name = match oci {
        Some(path) => ChartName::try_from(format!("oci://{path}/{name}:{version}")),
        None => ChartName::in_repository(url, name, version),
    };
    Ok(name?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(of: &[(&str, &str)]) -> UnpackedFiles {
        of.iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn unbundled_dependencies_of_a_chart_and_of_bundled_charts_are_found() {
        let chart = files(&[
            (
                "Chart.yaml",
                "name: a\nversion: 1.0.0\ndependencies:\n- {name: b, version: 1.x, repository: 'https://r'}\n- {name: in, version: '1'}",
            ),
            (
                "Chart.lock",
                "dependencies: [{name: b, version: 1.4.2, repository: 'https://r'}]\ndigest: x\n",
            ),
            (
                "charts/in/Chart.yaml",
                "name: in\ndependencies: [{name: c, version: ^2, repository: 'oci://q/r'}]",
            ),
            (
                "charts/in/requirements.yaml",
                "dependencies:\n- {name: d, version: '3', repository: '@x'}\n",
            ),
            ("charts/none/values.yaml", "a: 1"),
        ]);
        let limits = Limits::default();
        let found = outside_needs(chart, &mut ArchiveBudget::new(&limits), &limits).unwrap();
        let found: Vec<_> = found
            .dependencies
            .iter()
            .map(|one| (&*one.name, &*one.version, &*one.repository))
            .collect();
        assert_eq!(
            found,
            [
                ("c", "^2", "oci://q/r"),
                ("d", "3", "@x"),
                ("b", "1.4.2", "https://r")
            ]
        );
    }

    #[test]
    fn references_of_schemas_to_other_documents_are_found() {
        let schema = r##"{"$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://r.test/own.json", "properties": {
            "a": {"$ref": "#/definitions/x"}, "b": {"$ref": "https://r.test/own.json#/x"},
            "c": {"anyOf": [{"$ref": "https://k8s.test/_definitions.json#/definitions/x"}]}}}"##;
        let chart = files(&[
            ("Chart.yaml", "name: a"),
            ("values.schema.json", "no schema"),
            ("charts/b/Chart.yaml", "name: b"),
            ("charts/b/values.schema.json", schema),
        ]);
        let limits = Limits::default();
        let needs = outside_needs(chart, &mut ArchiveBudget::new(&limits), &limits).unwrap();
        let url = "https://k8s.test/_definitions.json";
        assert_eq!(needs.schemas, [("b".into(), url.into())].into());
    }

    #[test]
    fn null_members_and_numbers_as_versions_are_read() {
        let text = "apiVersion: ~\nname: a\ndependencies: null\n";
        let chart = chart_yaml(&files(&[("Chart.yaml", text)])).unwrap();
        assert!(chart.dependencies.is_empty());
        let text = "name: a\ndependencies: [{name: b, version: 2, repository: ~}]\n";
        let chart = chart_yaml(&files(&[("Chart.yaml", text)])).unwrap();
        assert_eq!(chart.dependencies[0].version, "2");
        let lists = files(&[("Chart.lock", "dependencies: ~\n")]);
        assert_eq!(listed_dependencies(&lists, "Chart.lock"), Ok(vec![]));
    }

    #[test]
    fn a_repeated_key_is_accepted_as_by_helm() {
        let text = "name: a\nhome: x\nhome: y\nversion: 1.0.0\nversion: 2.0.0\n";
        let chart = chart_yaml(&files(&[("Chart.yaml", text)])).unwrap();
        assert_eq!(plain(&chart.version).as_deref(), Some("2.0.0"));
        let broken = chart_yaml(&files(&[("Chart.yaml", "name: [\n")])).map(|chart| chart.name);
        assert!(
            broken
                .unwrap_err()
                .contains("its Chart.yaml cannot be read")
        );
    }

    #[test]
    fn a_chart_may_bundle_as_many_charts_as_the_limit() {
        let chart = files(&[
            ("Chart.yaml", "name: a"),
            ("charts/b/Chart.yaml", "name: b"),
            ("charts/b/charts/c/Chart.yaml", "name: c"),
        ]);
        let find = |charts_inside| {
            let limits = Limits {
                charts_inside,
                ..Limits::default()
            };
            outside_needs(chart.clone(), &mut ArchiveBudget::new(&limits), &limits)
        };
        assert_eq!(find(1).unwrap_err(), "it contains more than 1 charts");
        assert_eq!(find(2), Ok(OutsideNeeds::default()));
    }
}
