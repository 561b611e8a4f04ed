//! Charts that are named as in the lock, instead of by a path.

use super::bundle_flags::LockFlags;
use super::{CliError, Context};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartArchive, LockedChart};
use landfall_model::document::nearest;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The number of charts that an error lists.
const LISTED_NAMES: usize = 5;

/// Input paths. Charts of the lock are archives in a temporary folder.
pub(crate) struct LockedCharts {
    pub paths: Vec<PathBuf>,
    /// The path of each archive, and the argument that names its chart.
    archives: Vec<(String, String)>,
    /// Deletes the archives when dropped.
    folder: Option<TempDir>,
}

impl LockedCharts {
    /// Whether one of the paths is a temporary archive.
    pub(crate) fn has_any(&self) -> bool {
        self.folder.is_some()
    }

    /// The path of a file for messages. If the file is a temporary archive or is inside one, the
    /// path of the archive is replaced by the argument that names the chart.
    pub(crate) fn shown(&self, file: String) -> String {
        let replaced = self.archives.iter().find_map(|(archive, argument)| {
            Some(format!("{argument}{}", file.strip_prefix(&**archive)?))
        });
        replaced.unwrap_or(file)
    }
}

/// Whether `path` does not exist, and may be meant as the name of a chart.
fn is_name(path: &Path) -> bool {
    let name = path.to_str().and_then(|text| text.split(':').next());
    let is_word = name.is_some_and(|name| name != "-" && !name.contains(['/', '\\', '.']));
    is_word && !path.exists()
}

/// The error for an argument that is neither a file nor the name of a locked chart.
fn unknown_chart(text: &str, charts: &[ChartArchive]) -> CliError {
    let names: BTreeSet<&str> = charts.iter().map(|chart| &*chart.chart).collect();
    let help = match nearest(text, names.iter().copied()) {
        Some(near) => format!("did you mean the chart {near}?"),
        None => {
            let names: Vec<&str> = names.into_iter().take(LISTED_NAMES).collect();
            format!("the lock has charts such as {}", names.join(", "))
        }
    };
    let message = format!("there is no file {text}, and the lock has no chart of this name");
    CliError::usage(message).with_help(help)
}

/// Replaces each of `paths` that does not exist and is the name of a locked chart (`app`,
/// `app:1.2.3`, or its name in the lock) by an archive of the chart. `arguments` may include a
/// bundle.
pub(crate) fn locked_charts(
    paths: Vec<PathBuf>,
    lock: &Lock,
    flags: &LockFlags,
    arguments: &[PathBuf],
    context: &Context,
) -> Result<LockedCharts, CliError> {
    let charts: Vec<ChartArchive> = lock
        .charts
        .iter()
        .filter_map(LockedChart::archive)
        .collect();
    let mut folder = None;
    let mut found = Vec::new();
    let mut archives = Vec::new();
    for path in paths {
        let text = path.to_str().unwrap_or_default();
        let meant: Vec<&ChartArchive> = charts
            .iter()
            .filter(|chart| {
                let (name, version) = text.split_once(':').unwrap_or((text, &chart.version));
                chart.item == text || (chart.chart == name && chart.version == version)
            })
            .collect();
        if meant.is_empty() && !charts.is_empty() && is_name(&path) {
            return Err(unknown_chart(text, &charts));
        }
        // An existing file or folder wins over a locked chart of the same name.
        if meant.is_empty() || path.exists() {
            found.push(path);
            continue;
        }
        let [chart] = meant[..] else {
            let names: Vec<&str> = meant.iter().map(|chart| &*chart.item).collect();
            return Err(CliError::usage(format!(
                "{text} is ambiguous: name one of {}",
                names.join(", ")
            )));
        };
        let failed = |why: String| CliError::failed(format!("the chart {}: {why}", chart.item));
        let archive = flags.content(context, arguments)?.read(&chart.archive);
        let archive = archive.map_err(|error| failed(error.to_string()))?;
        let made = folder
            .take()
            .map_or_else(tempfile::tempdir, Ok)
            .map_err(|error| failed(error.to_string()))?;
        // a folder for each: charts of different repositories may have the same file name
        let own = made.path().join(found.len().to_string());
        let file = own.join(chart.file());
        std::fs::create_dir(&own)
            .and_then(|()| std::fs::write(&file, archive))
            .map_err(|error| failed(error.to_string()))?;
        folder = Some(made);
        archives.push((file.display().to_string(), text.to_owned()));
        found.push(file);
    }
    Ok(LockedCharts {
        paths: found,
        archives,
        folder,
    })
}
