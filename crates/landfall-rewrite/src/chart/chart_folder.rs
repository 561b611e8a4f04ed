//! Collects the files of a chart in a folder: metadata, default values, templates, subcharts.

use super::error::ChartError;
use crate::inputs::is_document;
use landfall_model::Limits;
use landfall_model::document::{ArchiveBudget, UnpackedFiles, read_input};
use std::fs;
use std::io;
use std::path::Path;

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
            return Err(ChartError::Deep {
                path: charts.display().to_string(),
                depth: self.limits.chart_depth,
            });
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

    /// Adds the documents in `dir` and below it. A link to a folder is not followed.
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
            } else if is_document(Path::new(&*name))
                && file_type(&path)?.is_some_and(|kind| kind.is_file())
            {
                self.add_file(&path, format!("{prefix}{name}"))?;
            }
        }
        self.check_count(dir)
    }

    fn check_count(&self, dir: &Path) -> Result<(), ChartError> {
        if self.files.len() <= self.limits.archive_files {
            return Ok(());
        }
        Err(ChartError::Large {
            path: dir.into(),
            limit: self.limits.archive_files as u64,
        })
    }

    /// Adds the file at `path` under this name.
    fn add_file(&mut self, path: &Path, name: String) -> Result<(), ChartError> {
        let content = read_limited(path, self.limits)?;
        self.budget
            .take(content.len() as u64)
            .map_err(|source| ChartError::Archive {
                path: path.display().to_string(),
                source,
            })?;
        self.files.insert(name, content);
        Ok(())
    }
}

/// Reads a file, unless it is larger than an archive may be.
pub(super) fn read_limited(path: &Path, limits: &Limits) -> Result<Vec<u8>, ChartError> {
    let metadata = fs::metadata(path).map_err(|source| cannot_open(path, source))?;
    if metadata.len() > limits.archive_bytes {
        return Err(ChartError::Large {
            path: path.into(),
            limit: limits.archive_bytes,
        });
    }
    read_input(path).map_err(|source| cannot_open(path, source))
}

/// The type of the file at `path`, which may be a link. `None` if there is no file, or the link
/// leads to none.
fn file_type(path: &Path) -> Result<Option<fs::FileType>, ChartError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_open(path, error)),
    }
}

fn cannot_open(path: &Path, source: io::Error) -> ChartError {
    ChartError::Open {
        path: path.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                matches!(&error, ChartError::Open { path: at, .. } if *at == path),
                "{part}: {error}"
            );
        }
    }
}
