//! The result of a verb that ran to its end.

use crate::cli::error::Exit;
use crate::push::is_left_out;
use landfall_model::report::{ItemStatus, ReportItem, RunReport};

/// The result of a verb that ran to its end, which need not be success.
#[derive(Debug)]
pub(crate) struct VerbOutcome {
    /// The report for `--output json` and `--report`.
    pub report: RunReport,
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
    pub(crate) fn new(report: RunReport, text: impl Into<String>, exit: Exit) -> VerbOutcome {
        VerbOutcome {
            report,
            text: text.into(),
            is_document: false,
            markdown: None,
            exit,
        }
    }

    /// Exit 0 with this text and an empty report.
    pub(crate) fn text(text: impl Into<String>) -> VerbOutcome {
        VerbOutcome::new(RunReport::default(), text, Exit::Done)
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
    pub(crate) fn of(report: RunReport, text: impl Into<String>) -> VerbOutcome {
        let exit = if !report.has_losses() {
            Exit::Done
        } else if report.has_successes() {
            Exit::Partial
        } else {
            Exit::Failed
        };
        VerbOutcome::new(report, text, exit)
    }

    /// Like [`VerbOutcome::of`], for a dry run: the items that would be written count as successes.
    pub(crate) fn of_dry_run(report: RunReport, text: impl Into<String>) -> VerbOutcome {
        let mut outcome = VerbOutcome::of(report, text);
        if outcome.exit == Exit::Failed && outcome.report.items.iter().any(is_planned) {
            outcome.exit = Exit::Partial;
        }
        outcome
    }
}

/// Whether a dry run found that this item would be written.
pub(crate) fn is_planned(item: &ReportItem) -> bool {
    item.status == ItemStatus::Skipped && item.digest.is_some() && !is_left_out(item)
}
