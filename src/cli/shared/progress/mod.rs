//! Progress for people: bars on a terminal, plain lines elsewhere, or nothing. It goes to stderr.

mod bars;
mod meter;
mod plain;
mod say;

use bars::Bars;
use landfall_model::report::Progress;
use plain::Plain;
use say::say;
use std::io::IsTerminal;
use std::sync::Arc;

/// The choice of `--progress`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgressMode {
    /// Bars if stderr is a terminal, else plain lines; plain lines in CI and with TERM=dumb too.
    #[default]
    Auto,
    /// Bars.
    Bar,
    /// A line now and then.
    Plain,
    /// Nothing but warnings.
    None,
}

/// The progress of the chosen kind.
pub(crate) fn progress(mode: ProgressMode) -> Arc<dyn Progress> {
    match mode {
        ProgressMode::Auto if std::io::stderr().is_terminal() && draws() => {
            Arc::new(Bars::default())
        }
        ProgressMode::Bar => Arc::new(Bars::default()),
        ProgressMode::Auto | ProgressMode::Plain => Arc::new(Plain::default()),
        ProgressMode::None => Arc::new(Warnings),
    }
}

/// Whether the terminal moves its cursor: a log of CI keeps every line that is drawn.
fn draws() -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    variable("TERM") != "dumb" && matches!(variable("CI").as_str(), "" | "false" | "0")
}

/// Warnings and nothing else.
struct Warnings;

impl Progress for Warnings {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, line: &str) {
        say(line);
    }
    fn end(&self) {}
}
