//! Edits: byte ranges of a text and what replaces them.

use std::ops::Range;

/// A byte range to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes of the text.
    pub span: Range<usize>,
    /// What replaces them.
    pub bytes: String,
}

impl Edit {
    /// Whether this edit is safe in a YAML scalar of any style: neither the old nor the new bytes
    /// contain one that YAML gives a meaning.
    pub fn is_literal(&self, source: &str) -> bool {
        let literal = |text: &str| {
            let ends = [text.bytes().next(), text.bytes().next_back()];
            ends.iter()
                .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte))
        };
        literal(&source[self.span.clone()]) && literal(&self.bytes)
    }

    /// The same edit in a text in which this one begins at `start`.
    pub fn shifted(self, start: usize) -> Edit {
        Edit {
            span: self.span.start + start..self.span.end + start,
            ..self
        }
    }
}

/// The range `part` of `text` with `edits` applied. They are sorted and lie within it.
pub(crate) fn apply(edits: &[&Edit], text: &str, part: Range<usize>) -> String {
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
