//! Shows long texts in the user's pager if stdout is a terminal.

use crate::cli::shared::VerbOutcome;
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Shows `text` in the pager; without a terminal or a pager, the outcome prints it.
pub(crate) fn show(text: &str) -> VerbOutcome {
    let is_shown = std::io::stdout().is_terminal() && show_in_pager(text);
    VerbOutcome::text(if is_shown { "" } else { text }).document()
}

/// Shows `text` in `MANPAGER` or `PAGER`, or else in less or more. Returns whether a pager
/// succeeded.
fn show_in_pager(text: &str) -> bool {
    let configured = ["MANPAGER", "PAGER"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|pager| !pager.trim().is_empty());
    let pagers = match configured {
        Some(pager) => vec![pager],
        None => vec!["less".to_owned(), "more".to_owned()],
    };
    pagers.iter().any(|pager| {
        // Through a shell, since the variable may contain flags.
        let started = Command::new("sh")
            .args(["-c", pager])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut started) = started else {
            return false;
        };
        if let Some(mut stdin) = started.stdin.take() {
            // A pager that is quit early closes the pipe, which is not an error.
            let _ = stdin.write_all(text.as_bytes());
        }
        started.wait().is_ok_and(|status| status.success())
    })
}
