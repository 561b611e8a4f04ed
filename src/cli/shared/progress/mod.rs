//! Progress on stderr: a bar on a terminal, plain lines elsewhere, or nothing.

mod bars;
mod meter;

use self::bars::{PhaseProgress, say};
use landfall_model::report::Progress;
use std::io::IsTerminal;
use std::sync::Arc;

/// The form in which progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgressMode {
    /// A bar if stderr is a terminal. In CI, with TERM=dumb and without a terminal, plain lines
    #[default]
    Auto,
    /// A bar
    Bar,
    /// A line every few seconds
    Plain,
    /// Only warnings and notes
    None,
}

/// Returns the progress display for `mode`.
pub(crate) fn progress(mode: ProgressMode) -> Arc<dyn Progress> {
    let has_bar = match mode {
        ProgressMode::Auto => std::io::stderr().is_terminal() && can_redraw(),
        ProgressMode::Bar => true,
        ProgressMode::Plain => false,
        ProgressMode::None => return Arc::new(WarningsOnly),
    };
    Arc::new(PhaseProgress::new(has_bar))
}

/// Whether a line can be redrawn. A log of a CI system would keep every state of a bar as a line.
fn can_redraw() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let ci = std::env::var("CI").unwrap_or_default();
    !is_dumb && matches!(ci.as_str(), "" | "false" | "0")
}

/// Shows warnings and notes, and no progress.
struct WarningsOnly;

impl Progress for WarningsOnly {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, line: &str) {
        say(line);
    }
    fn end(&self) {}
}
