//! Audits files and folders: which files are read, and charts.

use super::finding::{Coverage, FileFinding, Finding};
use super::helm::{Helm, HelmError};
use super::inventory::Inventory;
use super::packages;
use super::template_defaults::fill_template_defaults;
use super::text::audit;
use crate::chart::{Chart, ChartError};
use crate::error::RewriteError;
use crate::inputs::{Content, Input, inputs, read};
use landfall_model::Limits;
use serde::Serialize;
use serde_yaml::Mapping;
use std::path::{Path, PathBuf};

/// What was found in a tree.
#[derive(Debug, Default)]
pub struct Audited {
    /// How many files and charts were read.
    pub read: usize,
    /// What they name, in their order.
    pub found: Vec<FileFinding>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The file.
    pub file: String,
    /// Why.
    pub why: String,
}

/// Why a file is among what could not be read.
#[derive(Debug, thiserror::Error)]
enum UnreadError {
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error(transparent)]
    File(#[from] RewriteError),
    #[error(transparent)]
    Values(#[from] serde_yaml::Error),
    #[error("helm cannot render it, so that its defaults were read: {0}")]
    Helm(HelmError),
}

/// Audits everything that `paths` name: files as they are, of folders what `rewrite` looks at.
/// A chart's defaults are read together with those of its subcharts, as Helm does it.
///
/// # Errors
/// When a path cannot be read. What cannot be read inside a folder is in the result.
pub fn audit_tree(
    paths: &[PathBuf],
    inventory: &Inventory<'_>,
    limits: &Limits,
) -> Result<Audited, RewriteError> {
    discover(paths, inventory, limits, None)
}

/// The same, with charts rendered by `helm` where there is one. A chart that it cannot render is
/// read as it is, and stands among what could not be read.
///
/// # Errors
/// As [`audit_tree`].
pub fn discover(
    paths: &[PathBuf],
    inventory: &Inventory<'_>,
    limits: &Limits,
    helm: Option<&Helm>,
) -> Result<Audited, RewriteError> {
    Ok(discover_in(&inputs(paths, None)?, inventory, limits, helm))
}

/// Audits these files; of charts, those of their folders.
pub fn audit_inputs(inputs: &[Input], inventory: &Inventory<'_>, limits: &Limits) -> Audited {
    discover_in(inputs, inventory, limits, None)
}

fn discover_in(
    inputs: &[Input],
    inventory: &Inventory<'_>,
    limits: &Limits,
    helm: Option<&Helm>,
) -> Audited {
    let charts = charts(inputs);
    let mut audited = Audited::default();
    let mut rendered: Vec<&Path> = Vec::new();
    for path in &charts {
        let result = Chart::load(path, limits).map_err(UnreadError::from);
        if let Ok(true) = result
            .as_ref()
            .map(|_| audited.render(helm, path, inventory))
        {
            rendered.push(path);
            continue;
        }
        // its other documents are files of their own
        audited.add(path, result.and_then(|chart| of_values(&chart, inventory)));
    }
    let is_rendered = |path: &Path| rendered.iter().any(|chart| path.starts_with(chart));
    for input in inputs {
        let path = &input.path;
        if is_read_with(&charts, path) || is_rendered(path) {
            continue;
        }
        let result = match read(input) {
            Ok(Content::Other) => continue,
            Ok(Content::Text(text)) => {
                Ok(audit_text(&path.display().to_string(), &text, inventory))
            }
            Ok(Content::Archive(_)) => match Chart::load(path, limits) {
                Ok(_) if audited.render(helm, path, inventory) => continue,
                Ok(chart) => of_archive(&chart, inventory),
                // an archive of something else
                Err(ChartError::NoChart(_)) if !input.named => continue,
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        };
        audited.add(path, result);
    }
    audited
}

/// What `text`, the content of `file`, names.
pub fn audit_text(file: &str, text: &str, inventory: &Inventory<'_>) -> Vec<FileFinding> {
    let placed = |finding| FileFinding {
        file: file.to_owned(),
        finding,
    };
    let mut found: Vec<FileFinding> = audit(Path::new(file), text, inventory)
        .into_iter()
        .map(placed)
        .collect();
    found.extend(packages::findings(file, text, inventory));
    found
}

impl Audited {
    /// Whether a helm rendered the chart at `path`; what it says otherwise is kept.
    fn render(&mut self, helm: Option<&Helm>, path: &Path, inventory: &Inventory<'_>) -> bool {
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
                self.leave(path, &UnreadError::Helm(why));
                false
            }
        }
    }

    fn leave(&mut self, path: &Path, why: &UnreadError) {
        self.unread.push(Unread {
            file: path.display().to_string(),
            why: why.to_string(),
        });
    }

    fn add(&mut self, path: &Path, result: Result<Vec<FileFinding>, UnreadError>) {
        match result {
            Ok(found) => {
                self.read += 1;
                self.found.extend(found);
            }
            Err(why) => self.leave(path, &why),
        }
    }
}

/// What the defaults and the other documents of a chart in an archive name.
fn of_archive(chart: &Chart, inventory: &Inventory<'_>) -> Result<Vec<FileFinding>, UnreadError> {
    let documents = chart.documents().into_iter();
    let others = documents.flat_map(|(file, text)| audit_text(file, text, inventory));
    Ok(of_values(chart, inventory)?
        .into_iter()
        .chain(others)
        .collect())
}

/// What the defaults of a chart name.
fn of_values(chart: &Chart, inventory: &Inventory<'_>) -> Result<Vec<FileFinding>, UnreadError> {
    let mut values = chart.effective(&Mapping::new());
    fill_template_defaults(chart, &mut values, inventory);
    let text = serde_yaml::to_string(&values)?;
    let found = audit(Path::new("values.yaml"), &text, inventory).into_iter();
    Ok(found
        .map(|finding| in_chart(chart, &values, finding))
        .collect())
}

/// A finding in the effective `values` of a chart, at its place in the file that says it. What
/// belongs to a subchart that is switched off is not missing.
pub fn in_chart(chart: &Chart, values: &Mapping, mut finding: Finding) -> FileFinding {
    if let (Coverage::Missing { .. } | Coverage::Ambiguous { .. }, Some(condition)) =
        (&finding.coverage, chart.off(&finding.path, values))
    {
        finding.coverage = Coverage::Undecided {
            why: format!("its chart is switched off by {condition}"),
        };
    }
    let (file, line, column) = chart.place(&finding.path);
    FileFinding {
        file,
        finding: Finding {
            line,
            column,
            ..finding
        },
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "tgz")
}

/// The folders of charts that are in no other chart.
fn charts(inputs: &[Input]) -> Vec<PathBuf> {
    let named = inputs.iter().filter(|input| {
        input
            .path
            .file_name()
            .is_some_and(|name| name == "Chart.yaml")
    });
    let folders: Vec<PathBuf> = named
        .filter_map(|input| Some(input.path.parent()?.to_path_buf()))
        .collect();
    let inner = |folder: &PathBuf| {
        folders
            .iter()
            .any(|other| folder.starts_with(other.join("charts")))
    };
    folders
        .iter()
        .filter(|folder| !inner(folder))
        .cloned()
        .collect()
}

/// Whether a file is part of what is read of a chart as a whole.
fn is_read_with(charts: &[PathBuf], path: &Path) -> bool {
    const PARTS: [&str; 4] = [
        "Chart.yaml",
        "Chart.lock",
        "values.yaml",
        "requirements.yaml",
    ];
    let folder = path.parent().unwrap_or(Path::new(""));
    let in_chart = charts
        .iter()
        .any(|chart| folder == chart || folder.starts_with(chart.join("charts")));
    let is_part = path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| PARTS.contains(&name));
    let in_charts = folder.file_name().is_some_and(|name| name == "charts");
    in_chart
        && ((is_part && folder.join("Chart.yaml").is_file()) || (is_archive(path) && in_charts))
}
