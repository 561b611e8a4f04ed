//! Texts for people, in their pager where stdout is a terminal.

use super::Outcome;
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// The outcome of a verb that shows `text`.
pub(crate) fn show(text: &str) -> Outcome {
    let is_shown = std::io::stdout().is_terminal() && is_paged(text);
    Outcome::text(if is_shown { "" } else { text }).document()
}

/// Shows `text` by the pager that the user chose, else by less or more. Whether one of them did.
fn is_paged(text: &str) -> bool {
    let chosen = ["MANPAGER", "PAGER"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok());
    let chosen = chosen
        .filter(|pager| !pager.trim().is_empty())
        .take(1)
        .collect::<Vec<_>>();
    let pagers = if chosen.is_empty() {
        vec!["less".to_owned(), "more".to_owned()]
    } else {
        chosen
    };
    pagers.iter().any(|pager| {
        // it may have flags
        let started = Command::new("sh")
            .args(["-c", pager])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut started) = started else {
            return false;
        };
        if let Some(mut stdin) = started.stdin.take() {
            // who has read enough does not read on
            let _ = stdin.write_all(text.as_bytes());
        }
        started.wait().is_ok_and(|status| status.success())
    })
}
