//! Audits files, folders and charts.

use super::chart_images::{AuditedFolders, HelmCommand, missing_dependencies};
use super::kustomized::Kustomizations;
use super::template_defaults::fill_template_defaults;
use super::urls::schema_findings;
use super::{AuditFinding, FileFinding, audit, installs};
use crate::chart::{ChartError, HelmChart};
use crate::inputs::{InputContent, InputFile, RewriteError, inputs, is_document, read};
use crate::inventory::{HelmRepositories, Inventory, LockCoverage};
use crate::rules::add_helm_repositories;
use landfall_model::{Failure, Limits};
use serde::Serialize;
use serde_yaml::Mapping;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The result of auditing files and folders.
#[derive(Debug, Default)]
pub struct AuditResult {
    /// The number of files and charts that were read.
    pub read: usize,
    /// The findings, in the order of the files.
    pub found: Vec<FileFinding>,
    /// The files and charts that could not be read, the charts that helm could not render, and the
    /// dependencies that charts do not contain.
    pub unread: Vec<UnreadFile>,
}

/// A file or chart that could not be read, a chart that helm could not render, or a dependency that
/// a chart does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadFile {
    /// The path of the file or chart.
    pub file: String,
    /// The reason, as messages show it.
    pub why: String,
}

/// Audits the files at `paths`, and in folders the files that `rewrite` reads. The default values
/// of a chart are combined with the default values of its subcharts as Helm does it.
///
/// # Errors
/// If a path cannot be listed. The result lists the files that cannot be read.
pub fn audit_tree(
    paths: &[PathBuf],
    inventory: &Inventory<'_>,
    limits: &Limits,
) -> Result<AuditResult, RewriteError> {
    discover(paths, inventory, limits, None)
}

/// Like [`audit_tree`], with charts rendered by `helm` if given. If helm cannot render a chart, its
/// default values are read, and the chart is also listed as unread.
///
/// # Errors
/// Like [`audit_tree`].
pub fn discover(
    paths: &[PathBuf],
    inventory: &Inventory<'_>,
    limits: &Limits,
    helm: Option<&HelmCommand>,
) -> Result<AuditResult, RewriteError> {
    Ok(discover_in(&inputs(paths, None)?, inventory, limits, helm))
}

/// Audits the files `inputs`. A folder with a Chart.yaml is audited as a chart.
pub fn audit_inputs(
    inputs: &[InputFile],
    inventory: &Inventory<'_>,
    limits: &Limits,
) -> AuditResult {
    discover_in(inputs, inventory, limits, None)
}

fn discover_in(
    inputs: &[InputFile],
    inventory: &Inventory<'_>,
    limits: &Limits,
    helm: Option<&HelmCommand>,
) -> AuditResult {
    if !inputs.is_empty() {
        inventory.know_helm_repositories(|| helm_repositories(inputs));
    }
    let charts = charts(inputs);
    let chart_folders = ChartFolders::new(&charts);
    let folders = AuditedFolders::new(&charts);
    let mut audited = AuditResult::default();
    let mut rendered: Vec<&Path> = Vec::new();
    for folder in &charts {
        // a relative path without folders has the empty path as its parent
        let path = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder.as_path()
        };
        let result = HelmChart::load(path, limits).map_err(Failure::from);
        if let Ok(true) = result
            .as_ref()
            .map(|_| audited.render(helm, path, inventory))
        {
            rendered.push(folder);
            continue;
        }
        if let Ok(chart) = &result {
            audited.add_missing_dependencies(chart, &folders);
        }
        // the other documents of the chart are among `inputs`
        audited.add(path, result.and_then(|chart| of_values(&chart, inventory)));
    }
    let is_rendered = |path: &Path| {
        let mut charts = rendered.iter();
        charts.any(|chart| is_rendered_in(chart, path))
    };
    for input in inputs {
        let path = &input.path;
        if is_read_with(&chart_folders, path) || is_rendered(path) {
            continue;
        }
        let result = match read(input) {
            Ok(InputContent::Other) => continue,
            Ok(InputContent::Text(text, _)) => {
                Ok(audit_text(&path.display().to_string(), &text, inventory))
            }
            Ok(InputContent::Archive(_)) => match HelmChart::load(path, limits) {
                Ok(chart) if audited.render(helm, path, inventory) => {
                    let others = documents(&chart, inventory, |file| !is_rendered_in(path, file));
                    audited.found.extend(others);
                    continue;
                }
                Ok(chart) => {
                    audited.add_missing_dependencies(&chart, &folders);
                    of_archive(&chart, inventory)
                }
                // an archive that is not a chart
                Err(ChartError::NoChart(_)) if !input.named => continue,
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        };
        audited.add(path, result);
    }
    let kustomizations = Kustomizations::of(inputs);
    let found = audited.found.iter_mut();
    found.for_each(|one| kustomizations.settle(one));
    audited
}

/// The repositories of charts that the documents among `inputs` define for Flux.
fn helm_repositories(inputs: &[InputFile]) -> HelmRepositories {
    let mut found = HelmRepositories::new();
    for input in inputs.iter().filter(|input| is_document(&input.path)) {
        if let Ok(InputContent::Text(text, _)) = read(input) {
            add_helm_repositories(&text, &mut found);
        }
    }
    found
}

/// Audits `text`, the content of `file`.
pub fn audit_text(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    // a stream on stdin has no other files
    inventory.know_helm_repositories(|| {
        let mut found = HelmRepositories::new();
        add_helm_repositories(text, &mut found);
        found
    });
    let mut findings = audit(Path::new(file), text, inventory);
    if Path::new(file).file_name() == Some(OsStr::new("values.schema.json")) {
        // a locked URL, or a similar one, was found already
        let mut schemas = schema_findings(text, inventory);
        let found: BTreeSet<&str> = findings.iter().map(|one| &*one.reference).collect();
        schemas.retain(|schema| !found.contains(&*schema.reference));
        findings.extend(schemas);
    }
    let found = findings.into_iter().map(|finding| FileFinding {
        file: file.to_owned(),
        finding,
    });
    let mut found: Vec<FileFinding> = found.collect();
    found.extend(installs::missing_fetches(file, text, inventory, &found));
    found.extend(installs::package_findings(file, text, inventory));
    found
}

impl AuditResult {
    /// Audits the chart at `path` as helm renders it. Returns whether that succeeded; an error of
    /// helm is recorded.
    fn render(
        &mut self,
        helm: Option<&HelmCommand>,
        path: &Path,
        inventory: &Inventory<'_>,
    ) -> bool {
        let Some(helm) = helm else { return false };
        match helm.template(path) {
            Ok(text) => {
                self.add(
                    path,
                    Ok(audit_text(
                        &format!("{} (rendered)", path.display()),
                        &text,
                        inventory,
                    )),
                );
                true
            }
            Err(why) => {
                let why = format!("helm cannot render it, so its default values were read: {why}");
                self.add_unread(path, why);
                false
            }
        }
    }

    fn add_missing_dependencies(&mut self, chart: &HelmChart, folders: &AuditedFolders<'_>) {
        for path in missing_dependencies(chart, folders) {
            let why = "Chart.yaml lists this dependency, but the chart does not contain it; add it \
                       with `helm dependency build`";
            self.add_unread(&path, why);
        }
    }

    fn add_unread(&mut self, path: &Path, why: impl ToString) {
        self.unread.push(UnreadFile {
            file: path.display().to_string(),
            why: why.to_string(),
        });
    }

    fn add(&mut self, path: &Path, result: Result<Vec<FileFinding>, Failure>) {
        match result {
            Ok(found) => {
                self.read += 1;
                self.found.extend(found);
            }
            Err(why) => self.add_unread(path, why),
        }
    }
}

/// Audits the default values and the other documents of a chart in an archive.
fn of_archive(chart: &HelmChart, inventory: &Inventory<'_>) -> Result<Vec<FileFinding>, Failure> {
    let mut found = of_values(chart, inventory)?;
    found.extend(documents(chart, inventory, |_| true));
    Ok(found)
}

/// Audits each document of a chart in an archive if `wanted` accepts its path.
fn documents(
    chart: &HelmChart,
    inventory: &Inventory<'_>,
    wanted: impl Fn(&Path) -> bool,
) -> Vec<FileFinding> {
    let documents = chart.documents().into_iter();
    documents
        .filter(|(file, _)| wanted(Path::new(file)))
        .flat_map(|(file, text)| audit_text(file, text, inventory))
        .collect()
}

/// Audits the default values of a chart.
fn of_values(chart: &HelmChart, inventory: &Inventory<'_>) -> Result<Vec<FileFinding>, Failure> {
    let mut values = chart.effective(&Mapping::new());
    fill_template_defaults(chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values).map_err(|error| Failure::usage(error.to_string()))?;
    let found = audit(Path::new("values.yaml"), &text, inventory).into_iter();
    Ok(found
        .map(|finding| in_chart(chart, &values, finding))
        .collect())
}

/// Moves a finding in the effective `values` of a chart to its position in the values file. Missing
/// and ambiguous images of a disabled subchart become undecided.
pub fn in_chart(chart: &HelmChart, values: &Mapping, mut finding: AuditFinding) -> FileFinding {
    if let (LockCoverage::Missing { .. } | LockCoverage::Ambiguous { .. }, Some(condition)) =
        (&finding.coverage, chart.disabled_by(&finding.path, values))
    {
        finding.coverage = LockCoverage::Undecided {
            why: format!("its chart is disabled by {condition}"),
        };
    }
    let (file, line, column) = chart.value_position(&finding.path);
    FileFinding {
        file,
        finding: AuditFinding {
            line,
            column,
            ..finding
        },
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "tgz")
}

/// The folders of the charts, without subcharts.
fn charts(inputs: &[InputFile]) -> Vec<PathBuf> {
    let named = inputs.iter().filter(|input| {
        input
            .path
            .file_name()
            .is_some_and(|name| name == "Chart.yaml")
    });
    let folders: Vec<PathBuf> = named
        .filter_map(|input| Some(input.path.parent()?.to_path_buf()))
        .collect();
    // a chart below `charts` is read with its parent, whose values may change its images
    let all = ChartFolders::new(&folders);
    let mut top_level = folders.clone();
    top_level.retain(|folder| !all.has_inside(folder));
    top_level
}

/// The folders of charts, in which a path is looked up: there may be thousands of charts.
struct ChartFolders<'c> {
    folders: BTreeSet<&'c Path>,
    /// The folder `charts` of each.
    inner: BTreeSet<PathBuf>,
}

impl<'c> ChartFolders<'c> {
    fn new(charts: &'c [PathBuf]) -> ChartFolders<'c> {
        ChartFolders {
            folders: charts.iter().map(PathBuf::as_path).collect(),
            inner: charts.iter().map(|chart| chart.join("charts")).collect(),
        }
    }

    /// Whether `path` is in or below the folder `charts` of one of them.
    fn has_inside(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.inner.contains(above))
    }
}

/// Whether helm renders the file at `path` with the chart at `chart`: a template or a custom
/// resource definition of the chart or of its subcharts.
fn is_rendered_in(chart: &Path, path: &Path) -> bool {
    let Ok(inner) = path.strip_prefix(chart) else {
        return false;
    };
    let mut names = inner.iter().map(OsStr::as_encoded_bytes);
    loop {
        match names.next() {
            Some(b"templates" | b"crds") => return true,
            // the next name is the folder or archive of a subchart
            Some(b"charts") => drop(names.next()),
            _ => return false,
        }
    }
}

/// Whether a file was read as a part of its chart.
fn is_read_with(charts: &ChartFolders<'_>, path: &Path) -> bool {
    const PARTS: [&str; 4] = [
        "Chart.yaml",
        "Chart.lock",
        "values.yaml",
        "requirements.yaml",
    ];
    let folder = path.parent().unwrap_or(Path::new(""));
    let in_chart = charts.folders.contains(folder) || charts.has_inside(folder);
    let is_part = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| PARTS.contains(&name));
    let in_charts = folder.file_name().is_some_and(|name| name == "charts");
    // a folder in `charts` without a Chart.yaml is not a subchart, so its files are read by
    // themselves
    in_chart
        && ((is_part && folder.join("Chart.yaml").is_file()) || (is_archive(path) && in_charts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_item::lockfile::Lock;
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn the_repository_of_a_release_of_flux_may_be_in_another_file() {
        let release = "kind: HelmRelease\nspec:\n  chart:\n    spec:\n      chart: d\n      \
                       version: 1.10.0\n      sourceRef: {kind: HelmRepository, name: c}\n";
        let repository = |url: &str| {
            format!("kind: HelmRepository\nmetadata: {{name: c}}\nspec: {{url: '{url}'}}\n")
        };
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let missing = |found: &[FileFinding]| -> Vec<String> {
            let missing = found.iter().filter(|one| one.finding.coverage.is_missing());
            missing.map(|one| one.finding.reference.clone()).collect()
        };
        for (url, expected) in [
            ("oci://quay.io/c", "quay.io/c/d:1.10.0"),
            ("https://h.test/c", "h.test/c/d:1.10.0"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("a.yaml"), release).unwrap();
            std::fs::write(folder.path().join("b.yaml"), repository(url)).unwrap();
            let paths = [folder.path().to_path_buf()];
            let inventory = Inventory::new(&lock, None, None, "2026-01-01");
            let audited = audit_tree(&paths, &inventory, &Limits::default()).unwrap();
            assert_eq!(missing(&audited.found), [expected]);
            let inventory = Inventory::new(&lock, None, None, "2026-01-01");
            let stream = format!("{release}---\n{}", repository(url));
            let found = audit_text("<stdin>", &stream, &inventory);
            assert_eq!(missing(&found), [expected]);
        }
        // as `kubectl get -o yaml` prints both, and as a second namespace defines it
        let item = |object: &str| format!("- {}\n", object.trim_end().replace('\n', "\n  "));
        let slash = repository("https://h.test/c/");
        let stream = format!(
            "kind: List\nitems:\n{}{}---\n{slash}",
            item(release),
            item(&repository("https://h.test/c"))
        );
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = audit_text("<stdin>", &stream, &inventory);
        assert_eq!(missing(&found), ["h.test/c/d:1.10.0"]);
        // two repositories have this name
        let stream = format!(
            "{release}---\n{}---\n{}",
            repository("oci://a.test/b"),
            repository("oci://c.test/d")
        );
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = audit_text("<stdin>", &stream, &inventory);
        assert_eq!((found.len(), missing(&found)), (1, vec![]));
    }

    #[test]
    fn many_charts_are_listed_in_linear_time() {
        assert_linear(500, |count| {
            let input = |path: String| InputFile {
                relative: PathBuf::from(&path),
                path: PathBuf::from(path),
                named: false,
            };
            let own = (0..count).map(|n| input(format!("a/c{n}/Chart.yaml")));
            let inner = (0..count).map(|n| input(format!("a/c{n}/charts/s/Chart.yaml")));
            let inputs: Vec<InputFile> = own.chain(inner).collect();
            let charts = charts(&inputs);
            assert_eq!(charts.len(), count);
            let folders = ChartFolders::new(&charts);
            for input in &inputs {
                let folder = input.path.parent().unwrap();
                assert!(folders.folders.contains(folder) != folders.has_inside(folder));
            }
        });
    }

    #[test]
    fn helm_renders_the_templates_and_definitions_of_a_chart_and_its_subcharts() {
        let is_rendered = |path: &str| is_rendered_in(Path::new("a/c"), Path::new(path));
        for path in [
            "a/c/templates/p.yaml",
            "a/c/crds/x/d.yaml",
            "a/c/charts/s/templates/p.yaml",
            "a/c/charts/s.tgz/charts/t/crds/d.yaml",
        ] {
            assert!(is_rendered(path), "{path}");
        }
        for path in [
            "a/c/Dockerfile",
            "a/c/ci/templates/p.yaml",
            "a/c/charts/s/Dockerfile",
            "a/c/charts/templates/p.yaml",
            "a/d/templates/p.yaml",
        ] {
            assert!(!is_rendered(path), "{path}");
        }
    }
}
