//! Progress of a run, as a trait; and the silent one.

use super::escape;
use std::io::Write;

/// Hears how a run proceeds. Any thread may call any method.
pub trait Progress: Send + Sync {
    /// A phase (`pull`, `push`, …) begins, with so many items and bytes. 0 bytes means unknown.
    fn begin(&self, what: &str, items: u64, bytes: u64);
    /// So many more bytes are done.
    fn bytes(&self, count: u64);
    /// One more item is done; `name` is its name.
    fn item(&self, name: &str);
    /// A line that people should read at once: a warning, a wait.
    fn note(&self, line: &str);
    /// The phase ends.
    fn end(&self);
}

/// No progress, only warnings.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _what: &str, _items: u64, _bytes: u64) {}
    fn bytes(&self, _count: u64) {}
    fn item(&self, _name: &str) {}
    fn note(&self, line: &str) {
        say(line);
    }
    fn end(&self) {}
}

/// Writes a line to stderr.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape(line));
}
