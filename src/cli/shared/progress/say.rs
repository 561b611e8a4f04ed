//! Prints one line to stderr.

use landfall_model::redact_urls;
use landfall_model::report::escape_lines;
use std::io::Write;

pub(super) fn say(line: &str) {
    let _ = writeln!(
        std::io::stderr().lock(),
        "{}",
        escape_lines(&redact_urls(line))
    );
}
