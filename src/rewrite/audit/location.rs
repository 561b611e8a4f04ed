//! Line and column of an offset in a text.

use crate::document::LineIndex;

/// Line and column, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Location {
    /// The location of the byte `at`.
    pub(super) fn of(lines: &LineIndex<'_>, at: usize) -> Location {
        let (line, column) = lines.line_column(at);
        Location { line, column }
    }
}
