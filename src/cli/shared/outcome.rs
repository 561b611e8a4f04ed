//! What a verb returns when it ran to its end.

use crate::cli::error::Exit;
use landfall_model::report::RunReport;

/// What a verb returns when it ran to its end, which need not be success.
#[derive(Debug)]
pub(crate) struct VerbOutcome {
    /// For `--output json` and `--report`.
    pub report: RunReport,
    /// For stdout in text mode, with its last newline. Lines for people, in which control
    /// characters and commands to a CI are escaped when they are printed, unless it is a document.
    pub text: String,
    /// Whether the text is a document that was asked for, and printed byte for byte.
    pub is_document: bool,
    /// For stdout in Markdown mode; without it, the text is shown there as a block of code.
    pub markdown: Option<String>,
    /// The exit code.
    pub exit: Exit,
}

impl VerbOutcome {
    /// It ended with this exit code.
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

    /// The same with a text that is a document and not lines for people.
    pub(crate) fn document(self) -> VerbOutcome {
        VerbOutcome {
            is_document: true,
            ..self
        }
    }

    /// The exit code that the items call for: 0, 3, or 1 where nothing succeeded.
    pub(crate) fn of(report: RunReport, text: impl Into<String>) -> VerbOutcome {
        let exit = match (report.has_losses(), report.has_successes()) {
            (false, _) => Exit::Done,
            (true, true) => Exit::Partial,
            (true, false) => Exit::Failed,
        };
        VerbOutcome::new(report, text, exit)
    }
}
