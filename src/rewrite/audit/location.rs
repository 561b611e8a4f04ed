//! Line and column of an offset in a text.

/// Line and column, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The lines of a text, to find locations by offset.
pub(super) struct LineIndex<'t> {
    text: &'t str,
    /// The offset of the first byte of each.
    starts: Vec<usize>,
}

impl LineIndex<'_> {
    pub(super) fn new(text: &str) -> LineIndex<'_> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        LineIndex { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    pub(super) fn location(&self, at: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = self.text.get(start..at).unwrap_or_default().trim_start_matches('\u{feff}');
        Location { line, column: before.chars().count() + 1 }
    }
}
