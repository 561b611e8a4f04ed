//! The error that stops a verb before its end.

use landfall_model::redact_urls;
use landfall_model::report::{ErrorInfo, ReportItem, RunReport, RunStatus, TransferSide, one_line};
use std::fmt;

/// The error that stops a verb before its end: the exit code, the message and the report.
#[derive(Debug)]
pub(crate) struct CliError {
    pub exit: Exit,
    /// The side that failed, if the verb has sides.
    pub side: Option<TransferSide>,
    /// The item that failed, if exactly one item did.
    pub item: Option<String>,
    /// The message without its help: what failed, and why.
    pub message: String,
    /// The fix.
    pub help: Option<String>,
    /// Whether the report has the status `refused`, whatever the exit code is.
    pub refuses: bool,
    /// The report as far as it was known when the verb stopped.
    pub report: Box<RunReport>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> CliError {
        CliError {
            exit,
            side: None,
            item: None,
            message: message.into(),
            help: None,
            refuses: exit == Exit::Refused,
            report: Box::default(),
        }
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
        CliError::new(Exit::Usage, message).on(TransferSide::Input)
    }

    /// Exit 4: a check failed.
    pub(crate) fn refused(message: impl Into<String>) -> CliError {
        CliError::new(Exit::Refused, message)
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
        let report = RunReport {
            items: failed,
            ..RunReport::default()
        };
        CliError::of_lines(Exit::Refused, &lines).with_report(report)
    }

    /// The error of a command that Ctrl-C ended (exit 130).
    pub(crate) fn interrupted() -> CliError {
        CliError::new(
            Exit::Interrupted,
            "interrupted; run the same command again to resume",
        )
    }

    pub(crate) fn on(self, side: TransferSide) -> CliError {
        CliError {
            side: Some(side),
            ..self
        }
    }

    pub(crate) fn about(self, item: impl Into<String>) -> CliError {
        CliError {
            item: Some(item.into()),
            ..self
        }
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> CliError {
        CliError {
            help: Some(help.into()),
            ..self
        }
    }

    pub(crate) fn with_report(self, report: RunReport) -> CliError {
        CliError {
            report: Box::new(report),
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

/// The exit codes, as documented in the help and in `docs/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The command failed, and nothing succeeded.
    Failed = 1,
    /// Wrong use, or an input file that is missing or wrong.
    Usage = 2,
    /// Something succeeded, and something failed or is missing.
    Partial = 3,
    /// A check failed: drift, or a bundle that is damaged, unsigned or not approved.
    Refused = 4,
    /// SIGINT: 128 plus the number of the signal, as shells report it.
    Interrupted = 130,
}

impl Exit {
    /// The member `status` of the report.
    pub(crate) fn status(self) -> RunStatus {
        match self {
            Exit::Done => RunStatus::Done,
            Exit::Partial => RunStatus::Partial,
            Exit::Refused => RunStatus::Refused,
            Exit::Failed | Exit::Usage | Exit::Interrupted => RunStatus::Failed,
        }
    }
}
