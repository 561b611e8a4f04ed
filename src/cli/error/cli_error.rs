//! The error that stops a verb before its end: a [`Failure`] with a report.

use crate::cli::shared::VerbReport;
use landfall_model::report::{ErrorInfo, ReportItem, RunStatus, TransferSide, one_line};
use landfall_model::{Exit, Failure, redact_urls};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The error that stops a verb before its end.
#[derive(Debug)]
pub(crate) struct CliError {
    pub failure: Failure,
    /// The report as far as it was known when the verb stopped.
    pub report: Box<VerbReport>,
}

impl<E: Into<Failure>> From<E> for CliError {
    fn from(error: E) -> CliError {
        CliError {
            failure: error.into(),
            report: Box::default(),
        }
    }
}

impl Deref for CliError {
    type Target = Failure;

    fn deref(&self) -> &Failure {
        &self.failure
    }
}

impl DerefMut for CliError {
    fn deref_mut(&mut self) -> &mut Failure {
        &mut self.failure
    }
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> CliError {
        Failure::new(exit, message).into()
    }

    /// An error with a message of several lines. Line breaks within one of `lines` are removed:
    /// text that landfall did not write could otherwise imitate a line of its output.
    pub(crate) fn of_lines<'l>(
        exit: Exit,
        lines: impl IntoIterator<Item = &'l String>,
    ) -> CliError {
        let lines: Vec<String> = lines.into_iter().map(|line| one_line(line)).collect();
        CliError::new(exit, lines.join("\n"))
    }

    /// Exit 2: an argument or an input file is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> CliError {
        Failure::usage(message).into()
    }

    /// Exit 4: a check failed.
    pub(crate) fn refused(message: impl Into<String>) -> CliError {
        Failure::refused(message).into()
    }

    /// Exit 4: these items failed a check. The message has a line for each item, with its reason,
    /// below `head`, and the report has the items.
    pub(crate) fn refused_items(head: String, failed: Vec<ReportItem>) -> CliError {
        let mut lines = vec![head];
        for ReportItem { name, reason, .. } in &failed {
            lines.push(format!(
                "  {name}: {}",
                reason.as_deref().unwrap_or_default()
            ));
        }
        let report = VerbReport::of(failed);
        CliError::of_lines(Exit::Refused, &lines).with_report(report)
    }

    /// The error of a command that Ctrl-C ended (exit 130).
    pub(crate) fn interrupted() -> CliError {
        CliError::new(
            Exit::Interrupted,
            "interrupted; run the same command again to resume",
        )
    }

    pub(crate) fn on(mut self, side: TransferSide) -> CliError {
        self.side = Some(side);
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> CliError {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn with_report(self, report: impl Into<VerbReport>) -> CliError {
        CliError {
            report: Box::new(report.into()),
            ..self
        }
    }

    /// The member `status` of the report.
    pub(crate) fn status(&self) -> RunStatus {
        if self.refuses {
            RunStatus::Refused
        } else {
            self.exit.status()
        }
    }

    /// The member `error` of the report. Its message ends with the help. Messages may quote
    /// arguments, and those may be URLs with accounts.
    pub(crate) fn info(&self) -> ErrorInfo {
        ErrorInfo {
            side: self.side,
            item: self.item.as_deref().map(redact_urls),
            message: redact_urls(&self.to_string()),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}
