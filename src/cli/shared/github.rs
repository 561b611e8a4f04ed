//! `--output github`: annotations on stdout, and the summary of the step.

use crate::report::{Annotation, ErrorInfo, Level, Report, Status};
use std::fs::OpenOptions;
use std::io::Write;

/// The file that the summary of a step is written to.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The annotations of a result: its own, one for each item that failed or is missing, and the error.
pub(super) fn annotations(command: &str, report: &Report, error: Option<&ErrorInfo>) -> String {
    let lost = report.items.iter().filter(|item| matches!(item.status, Status::Failed | Status::Missing));
    let lost = lost.map(|item| Annotation {
        level: Level::Error,
        place: None,
        title: format!("{} {}", item.kind, item.name),
        message: item.reason.clone().unwrap_or_else(|| "it failed".into()),
    });
    let error = error.map(|error| Annotation {
        level: Level::Error,
        place: None,
        title: format!("landfall {command}"),
        message: error.message.clone(),
    });
    let all = report.annotations.iter().cloned().chain(lost).chain(error);
    all.map(|annotation| annotation.command()).collect()
}

/// Adds `markdown` to the summary of the step, where there is one.
///
/// # Errors
/// Why it cannot be written.
pub(super) fn append_summary(markdown: &str) -> Result<(), String> {
    let Some(path) = std::env::var_os(SUMMARY).filter(|path| !path.is_empty()) else { return Ok(()) };
    let written = OpenOptions::new().append(true).create(true).open(&path);
    let written = written.and_then(|mut file| file.write_all(markdown.as_bytes()));
    written.map_err(|error| format!("cannot write the step's summary {}: {error}", path.display()))
}
