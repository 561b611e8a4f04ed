//! The result of a scan: the references in a text, and how the text was read.

use super::edit::{self, SpanEdit};
use super::occurrence::Occurrence;
use landfall_model::document::LineIndex;
use serde::Serialize;
use std::ops::Range;

/// The way in which a text was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAs {
    /// As YAML, which includes JSON.
    Yaml,
    /// Word by word, as text.
    Text,
    /// Not at all, because it contains no word of the lock.
    Nothing,
}

/// The findings of a scan, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanResult {
    /// The references that were found.
    pub found: Vec<Occurrence>,
    /// The way in which the text was read.
    pub read_as: ReadAs,
    /// The byte ranges of values in Secrets, which must not be printed.
    pub secrets: Vec<Range<usize>>,
}

impl ScanResult {
    /// The result for a text that was not read.
    pub fn nothing() -> ScanResult {
        ScanResult {
            found: Vec::new(),
            read_as: ReadAs::Nothing,
            secrets: Vec::new(),
        }
    }

    /// The edits of all references, in the order of the text.
    pub fn edits(&self) -> Vec<&SpanEdit> {
        sorted_edits(&self.found)
    }

    /// Sorts the occurrences by offset, and sets their lines and columns in `text`.
    pub fn with_lines(mut self, text: &str) -> ScanResult {
        self.found.sort_by_key(|occurrence| occurrence.at);
        if !self.found.is_empty() {
            let lines = LineIndex::new(text);
            for occurrence in &mut self.found {
                (occurrence.line, occurrence.column) = lines.line_column(occurrence.at);
            }
        }
        self
    }

    /// Truncates references in Secrets at the first template call, because a literal in the call
    /// may be a password.
    pub fn without_secret_literals(mut self) -> ScanResult {
        self.secrets.sort_by_key(|secret| secret.start);
        let mut secrets = self.secrets.iter().peekable();
        let mut end = 0;
        for occurrence in &mut self.found {
            while let Some(secret) = secrets.next_if(|secret| secret.start <= occurrence.at) {
                end = end.max(secret.end);
            }
            if occurrence.at < end
                && let Some(call) = occurrence.written.find("{{")
            {
                occurrence.written.truncate(call + 2);
                occurrence.written.push('…');
            }
        }
        self
    }

    /// Applies all edits to `text`.
    pub fn apply(&self, text: &str) -> String {
        edit::apply(&self.edits(), text, 0..text.len())
    }
}

/// The edits of all occurrences, in the order of the text.
pub(crate) fn sorted_edits(found: &[Occurrence]) -> Vec<&SpanEdit> {
    let mut edits: Vec<_> = found
        .iter()
        .flat_map(|occurrence| &occurrence.edits)
        .collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits
}
