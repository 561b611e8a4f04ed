//! `--output github`: annotations on stdout, and the summary of the workflow step.

use crate::cli::shared::failed_items::FailureGroup;
use landfall_model::report::{AnnotationLevel, CiAnnotation, ErrorInfo, ItemStatus, RunReport};
use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the file for the summary of a workflow step.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// The annotations of a result: those of the report, one for each cause of failed or missing items,
/// and the error.
pub(super) fn annotations(command: &str, report: &RunReport, error: Option<&ErrorInfo>) -> String {
    let lost = report
        .items
        .iter()
        .filter(|item| matches!(item.status, ItemStatus::Failed | ItemStatus::Missing));
    // GitHub shows only the first ten errors of a step, so items with the same cause share an
    // annotation.
    let lost = FailureGroup::group(lost).into_iter().map(|group| {
        let cause = group.cause.as_deref().unwrap_or("it failed").to_owned();
        let (title, message) = match group.items[..] {
            [item] => (format!("{} {}", item.kind, item.name), cause),
            _ => (
                group.counted(),
                group
                    .names()
                    .fold(cause, |message, name| message + "\n" + &name),
            ),
        };
        CiAnnotation {
            level: AnnotationLevel::Error,
            place: None,
            title,
            message,
        }
    });
    let error = error.map(|error| CiAnnotation {
        level: AnnotationLevel::Error,
        place: None,
        title: format!("landfall {command}"),
        message: error.message.clone(),
    });
    let all = report.annotations.iter().cloned().chain(lost).chain(error);
    all.map(|annotation| annotation.command()).collect()
}

/// Appends `markdown` to the summary of the step, if this runs in a workflow.
pub(super) fn append_summary(markdown: &str) -> Result<(), String> {
    let Some(path) = std::env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let written = OpenOptions::new().append(true).create(true).open(&path);
    let written = written.and_then(|mut file| file.write_all(markdown.as_bytes()));
    written.map_err(|error| {
        format!(
            "cannot write the summary of the step to {}: {error}",
            path.display()
        )
    })
}
