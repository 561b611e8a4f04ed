//! Outputs the result of a verb: text, JSON or Markdown on stdout, the error on stderr, the report
//! file, and the record in the evidence log.

use super::command_log::{CommandLog, CommandResult};
use super::failed_items::FailureGroup;
use super::options::{GlobalFlags, OutputMode};
use super::output_file::{check_output, present_text};
use super::page_recorder::{PageRecorder, is_own_page, is_page};
use super::{ReportMember, VerbReport};
use crate::cli::error::{CliError, Exit};
use crate::push::is_left_out;
use landfall_content::{OutputGuard, write_file};
use landfall_model::report::{
    AnnotationLevel, CiAnnotation, ErrorInfo, ItemStatus, ReportItem, RunReport, RunStatus,
    TransferSide, escape_lines, markdown_block,
};
use landfall_os::Blocking;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// A result in the form in which it is printed and reported.
struct FinishedRun<'a> {
    command: &'a str,
    report: VerbReport,
    /// For stdout in text mode.
    text: String,
    /// For stdout in Markdown mode, if the verb has a Markdown form of its result.
    markdown: Option<String>,
    exit: Exit,
    status: RunStatus,
    error: Option<ErrorInfo>,
}

impl<'a> FinishedRun<'a> {
    fn new(command: &'a str, result: Result<VerbOutcome, CliError>) -> FinishedRun<'a> {
        match result {
            Ok(outcome) => FinishedRun {
                command,
                report: outcome.report,
                // A document is printed byte for byte. Other text may quote servers and file names.
                text: if outcome.is_document {
                    outcome.text
                } else {
                    escape_lines(&outcome.text)
                },
                markdown: outcome.markdown,
                exit: outcome.exit,
                status: outcome.exit.status(),
                error: None,
            },
            Err(error) => FinishedRun {
                command,
                text: String::new(),
                markdown: None,
                exit: error.exit,
                status: error.status(),
                error: Some(error.info()),
                report: *error.report,
            },
        }
    }

    /// The line for stderr, if the verb failed.
    fn error_line(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let side = match error.side {
            // Exit 3 usually means that something was done. Here, nothing was done.
            _ if self.status == RunStatus::Refused && self.exit == Exit::Partial => {
                "refused: ".to_owned()
            }
            Some(TransferSide::Input) | None => String::new(),
            Some(side) => format!("{side}: "),
        };
        let item = error.item.as_ref().map(|item| format!("{item}: "));
        let message = format!("{}{}", item.unwrap_or_default(), error.message);
        Some(format!("landfall: {side}{}", escape_lines(&message)))
    }

    /// The result for the evidence log.
    fn for_log(&self) -> CommandResult<'_> {
        CommandResult {
            report: &self.report,
            status: self.status,
            exit: self.exit,
            error: self.error.as_ref(),
        }
    }

    fn json(&self) -> String {
        let error = self.error.as_ref();
        let document = self.report.document(self.command, self.status, error);
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    fn markdown(&self) -> String {
        if let Some(markdown) = &self.markdown {
            return markdown.clone();
        }
        let message = self
            .error
            .as_ref()
            .map(|error| escape_lines(&error.message));
        format!(
            "**landfall {}: {}**\n\n{}",
            self.command,
            self.status,
            markdown_block(message.as_deref().unwrap_or(&self.text))
        )
    }

    /// The text for stdout. For GitHub, also appends the summary of the step.
    fn printed(&self, mode: OutputMode) -> String {
        match mode {
            OutputMode::Text => self.text.clone(),
            OutputMode::Json => self.json(),
            OutputMode::Markdown => self.markdown(),
            OutputMode::Github => {
                if let Err(message) = append_summary(&self.markdown()) {
                    complain(&message);
                }
                let annotations = annotations(self.command, &self.report, self.error.as_ref());
                format!("{}{annotations}", self.text)
            }
        }
    }
}

/// Prints and records the result of one command.
#[derive(Clone)]
pub(crate) struct ResultPrinter {
    /// The verb.
    pub command: String,
    pub global: GlobalFlags,
    pub page: Arc<PageRecorder>,
    /// The evidence log, if the command is recorded.
    pub log: Option<Arc<CommandLog>>,
}

impl ResultPrinter {
    /// Prints the result and writes the report and the evidence log. Returns the exit code of the
    /// process.
    pub(crate) fn finish(&self, result: Result<VerbOutcome, CliError>) -> ExitCode {
        let mut run = FinishedRun::new(&self.command, result);
        let mut code = run.exit as u8;
        // Recorded before anything is printed, so that a killed process cannot print a success that
        // has no record.
        if let Some(log) = &self.log {
            match log.append(&run.for_log()) {
                Ok(head) => {
                    let path = log.path.display().to_string();
                    run.report.add(ReportMember::log(path, Some(head)));
                }
                Err(error) => {
                    complain(&CliError::from(error).to_string());
                    // Turns success into a failure; any other code already says what happened.
                    code = code.max(Exit::Failed as u8);
                }
            }
        }
        if let Some(line) = run.error_line() {
            let _ = writeln!(Blocking(std::io::stderr().lock()), "{line}");
        }
        let printed = run.printed(self.global.output);
        let mut stdout = Blocking(std::io::stdout().lock());
        let written = stdout
            .write_all(printed.as_bytes())
            .and_then(|()| stdout.flush());
        // A reader such as `head` closes the pipe early, which is not an error.
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            complain(&format!("cannot write to stdout: {error}"));
            code = code.max(Exit::Failed as u8);
        }
        if let Some(path) = &self.global.report {
            let content = if is_page(path) {
                self.page
                    .page(&self.command, run.status, run.error.as_ref(), &run.report)
            } else {
                run.json()
            };
            let shown = path.display();
            // Checked again: the verb may have written its result or the log to this path, or it
            // failed before the first check.
            let written = if report_guard(path).finish().is_ok() {
                write_file(path, content.as_bytes())
                    .map_err(|error| format!("cannot write the report {shown}: {error}"))
            } else {
                Err(format!(
                    "the report was not written, because {shown} exists and is not a report\n\
                     help: name another file for --report"
                ))
            };
            if let Err(message) = written {
                complain(&message);
                code = code.max(Exit::Failed as u8);
            }
        }
        ExitCode::from(code)
    }
}

/// Checks that the report can be written to `path`, and that this replaces only another report.
pub(crate) fn check_report(path: &Path) -> Result<(), CliError> {
    check_output("the report", path)?;
    report_guard(path).finish().map_err(|failure| {
        let help = "name another file for --report, or move the file away";
        failure.with_help(help).into()
    })
}

/// Lets a report at `path` replace only another report.
fn report_guard(path: &Path) -> OutputGuard {
    let mut guard = OutputGuard::new(false);
    guard.check(path, |path| {
        present_text(path).is_some_and(|text| is_own_page(&text) || is_report(&text))
    });
    guard
}

/// Whether `text` is a report in JSON.
fn is_report(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|report: Value| {
        ["command", "status", "items", "totals", "hosts"]
            .iter()
            .all(|member| report.get(member).is_some())
    })
}

fn complain(message: &str) {
    let _ = writeln!(
        Blocking(std::io::stderr().lock()),
        "landfall: {}",
        escape_lines(message)
    );
}

/// The result of a verb that ran to its end, which need not be success.
#[derive(Debug)]
pub(crate) struct VerbOutcome {
    /// The report for `--output json` and `--report`.
    pub report: VerbReport,
    /// The text for stdout in text mode, with its last newline. Unless it is a document, control
    /// characters and workflow commands of CI systems are escaped when it is printed.
    pub text: String,
    /// Whether the text is a document, such as a manifest, which is printed byte for byte.
    pub is_document: bool,
    /// The text for stdout in Markdown mode; without it, `text` is printed as a code block.
    pub markdown: Option<String>,
    pub exit: Exit,
}

impl VerbOutcome {
    pub(crate) fn new(
        report: impl Into<VerbReport>,
        text: impl Into<String>,
        exit: Exit,
    ) -> VerbOutcome {
        VerbOutcome {
            report: report.into(),
            text: text.into(),
            is_document: false,
            markdown: None,
            exit,
        }
    }

    /// Exit 0 with this text and an empty report.
    pub(crate) fn text(text: impl Into<String>) -> VerbOutcome {
        VerbOutcome::new(VerbReport::default(), text, Exit::Done)
    }

    /// Sets the text for Markdown mode.
    pub(crate) fn with_markdown(self, markdown: String) -> VerbOutcome {
        VerbOutcome {
            markdown: Some(markdown),
            ..self
        }
    }

    /// Marks the text as a document.
    pub(crate) fn document(self) -> VerbOutcome {
        VerbOutcome {
            is_document: true,
            ..self
        }
    }

    /// An outcome with the exit code for the items: 0 if none is lost, 1 if some are lost and none
    /// succeeded, and 3 if some are lost and some succeeded.
    pub(crate) fn of(report: VerbReport, text: impl Into<String>) -> VerbOutcome {
        let exit = if !report.has_losses() {
            Exit::Done
        } else if report.has_successes() {
            Exit::Partial
        } else {
            Exit::Failed
        };
        VerbOutcome::new(report, text, exit)
    }

    /// Like [`VerbOutcome::of`]. In a dry run, the items that would be written count as successes.
    pub(crate) fn of_run(is_dry: bool, report: VerbReport, text: impl Into<String>) -> VerbOutcome {
        let mut outcome = VerbOutcome::of(report, text);
        if is_dry && outcome.exit == Exit::Failed && outcome.report.items.iter().any(is_planned) {
            outcome.exit = Exit::Partial;
        }
        outcome
    }
}

/// Whether a dry run found that this item would be written.
pub(crate) fn is_planned(item: &ReportItem) -> bool {
    item.status == ItemStatus::Skipped && item.digest.is_some() && !is_left_out(item)
}

/// The environment variable with the file for the summary of a workflow step.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// The annotations of a result: those of the report, one for each cause of failed or missing items,
/// and the error.
pub(super) fn annotations(command: &str, report: &RunReport, error: Option<&ErrorInfo>) -> String {
    let lost = report.items.iter().filter(|item| item.status.is_loss());
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
