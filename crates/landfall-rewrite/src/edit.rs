//! Edits of a text: byte ranges and their replacements.

use crate::index::ReferenceReplacement;
use std::ops::Range;

/// The replacement of a byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanEdit {
    /// The bytes that are replaced.
    pub span: Range<usize>,
    /// The text that replaces them.
    pub bytes: String,
}

impl SpanEdit {
    /// Whether this edit is safe in a YAML scalar of any style: neither the old nor the new bytes
    /// contain characters that have a meaning in YAML.
    pub fn is_literal(&self, source: &str) -> bool {
        has_no_indicators(&source[self.span.clone()]) && has_no_indicators(&self.bytes)
    }

    /// The same edit in a longer text, in which this text begins at `start`.
    pub fn shifted(self, start: usize) -> SpanEdit {
        SpanEdit {
            span: self.span.start + start..self.span.end + start,
            ..self
        }
    }
}

/// Whether no character of `text` can have a meaning in YAML: a colon or dash has one only at the
/// beginning or end of a text, or before a blank.
fn has_no_indicators(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let is_plain_at_ends = ends
        .iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()));
    is_plain_at_ends
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte))
}

/// Applies `edits` to the range `part` of `text`. The edits must be sorted and within the range.
pub(crate) fn apply(edits: &[&SpanEdit], text: &str, part: Range<usize>) -> String {
    let mut new = String::with_capacity(part.len() + 256);
    let mut done = part.start;
    for edit in edits {
        new.push_str(&text[done..edit.span.start]);
        new.push_str(&edit.bytes);
        done = edit.span.end;
    }
    new.push_str(&text[done..part.end]);
    new
}

// Splits references into name and pin, and writes replacements.

/// The reference `text` with `replacement` applied. A tag, and a digest unless it is replaced, are
/// kept as written.
pub(crate) fn replaced(text: &str, replacement: &ReferenceReplacement) -> String {
    let pin = pin(text);
    let name = match &replacement.to {
        Some(to) => to.to_string(),
        None => text[..text.len() - pin.len()].to_owned(),
    };
    let Some(digest) = &replacement.digest else {
        return format!("{name}{pin}");
    };
    let tag = &pin[..pin.find('@').unwrap_or(pin.len())];
    format!("{name}{tag}@{digest}")
}

/// The part of a reference after its repository: `:tag`, `@digest`, both or nothing.
pub(crate) fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..]
        .find([':', '@'])
        .map_or(text.len(), |at| last + at);
    &text[at..]
}
