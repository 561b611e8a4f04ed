//! Errors: how the program reports them, and the rules for errors of the whole workspace.
//!
//! # Rules
//!
//! 1. **An error is a [`Failure`](landfall_model::Failure)**, created where the operation fails,
//!    with exit code, side, item and help. An enum is needed only where code decides by its
//!    variants; its other causes are one variant `Failed(Failure)`.
//! 2. **The message** is lower case without a full stop and reads `what failed: why`. It contains
//!    the text of the cause, so printing an error never walks the chain. It never consists of a
//!    library's text alone, and it contains no password and no query string.
//! 3. **Help** is the fix, with the flag, key or command to use. The program prints it as a line of
//!    its own, `help: …`.
//! 4. **Side and item** say which side failed (source, destination or input), and which item.
//! 5. **The exit code** follows from the failure:
//!
//!    | failure | exit code |
//!    |---|---|
//!    | wrong usage, or an input file that is missing or invalid | [`Exit::Usage`] |
//!    | a check failed: drift, or a bundle that is damaged, unsigned or not approved | [`Exit::Refused`] |
//!    | something succeeded, something failed | [`Exit::Partial`] |
//!    | anything else | [`Exit::Failed`] |
//!
//!    An enum assigns it in its `From<…> for Failure`, next to the enum. [`CliError`] is a failure
//!    with the report of the command.

use crate::cli::shared::VerbReport;
use landfall_model::report::{ErrorInfo, ReportItem, RunStatus, TransferSide, one_line};
use landfall_model::{Failure, redact_urls};
use std::fmt;

pub(crate) use landfall_model::Exit;

/// The error that stops a verb before its end.
#[derive(Debug, derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct CliError {
    #[deref]
    #[deref_mut]
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

    /// Exit 1: the command cannot do what was requested.
    pub(crate) fn failed(message: impl Into<String>) -> CliError {
        Failure::failed(message).into()
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
