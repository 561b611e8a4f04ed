//! References in a text: their position, what they mean, and the edits that rewrite them.

use crate::text::has_placeholder;
use landfall_model::{ImageRef, redact_reference, redact_urls};
use serde::Serialize;
use std::ops::Range;

/// One occurrence of a reference in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The position in the decoded content, if the value is encoded: `base64, line 3, column 8`.
    pub inside: Option<String>,
    /// The reference as written, with `***` for the secrets of a URL. The parts of a split
    /// reference are joined.
    pub written: String,
    /// The role of the reference, by its position.
    pub role: ReferenceRole,
    /// The meaning of the reference, by the lock.
    pub meaning: ReferenceMeaning,
    /// The offset of its first byte in the text.
    pub at: usize,
    /// The edits that rewrite it. If one encoded value contains several references that change, the
    /// first of them has the edit for all.
    pub edits: Vec<SpanEdit>,
}

/// The meaning of a reference, by the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceMeaning {
    /// It refers to a locked item and must be changed.
    Known {
        /// The name of the item, or its repository if the reference has no tag. For a prefix, the
        /// prefix; for a URL with placeholders, the part before the first placeholder.
        item: String,
        /// The reference that replaces it.
        to: String,
        /// The locked URLs that match a URL with placeholders.
        reaches: Vec<String>,
    },
    /// It names the destination already. The value is the item that it refers to, if that is
    /// certain.
    Settled(Option<String>),
    /// It concerns a locked item, but must not be changed, for this reason.
    Left(String),
    /// The lock does not contain it.
    Unknown,
    /// Its position requires an image, but it is not an image reference, for this reason.
    Undecided(String),
}

impl ReferenceMeaning {
    /// The meaning of a reference to `item` that `to` replaces.
    pub fn known(item: String, to: impl Into<String>) -> ReferenceMeaning {
        ReferenceMeaning::Known {
            item,
            to: to.into(),
            reaches: Vec::new(),
        }
    }

    /// The meaning of a reference that must not be changed, with the reason `why`.
    pub fn left(why: impl Into<String>) -> ReferenceMeaning {
        ReferenceMeaning::Left(why.into())
    }

    /// The meaning of `text` at a position that requires an image, if the lock does not contain it.
    /// `None` if `text` is empty.
    pub fn of_unknown(text: &str) -> Option<ReferenceMeaning> {
        if text.is_empty() {
            return None;
        }
        // templates, shells and scripts replace placeholders before the value is used; a text with
        // `://` is a URL
        if has_placeholder(text) || text.contains("://") || text.parse::<ImageRef>().is_err() {
            return Some(ReferenceMeaning::unreadable());
        }
        Some(ReferenceMeaning::Unknown)
    }

    /// The same meaning, with secrets in the new reference masked: a rewrite keeps the query of a
    /// URL, which may contain a password.
    fn redacted(mut self) -> ReferenceMeaning {
        if let ReferenceMeaning::Known { to, .. } = &mut self {
            *to = redact_urls(to);
        }
        self
    }

    /// The meaning of a value that is not a reference, at a position that requires an image.
    pub fn unreadable() -> ReferenceMeaning {
        ReferenceMeaning::Undecided("it cannot be read as an image reference".into())
    }
}

impl Occurrence {
    /// An occurrence at the byte `at`, without edits. The scan later sets its line and column.
    /// Secrets in `written` and `meaning` are masked, because reports show them.
    pub fn new(
        at: usize,
        written: impl AsRef<str>,
        role: ReferenceRole,
        meaning: ReferenceMeaning,
    ) -> Occurrence {
        Occurrence {
            line: 0,
            column: 0,
            inside: None,
            written: redact_reference(written.as_ref()),
            role,
            meaning: meaning.redacted(),
            at,
            edits: Vec::new(),
        }
    }

    /// The same occurrence with one edit, which replaces `span` by `bytes`.
    #[must_use]
    pub fn with_edit(self, span: Range<usize>, bytes: String) -> Occurrence {
        Occurrence {
            edits: vec![SpanEdit { span, bytes }],
            ..self
        }
    }

    /// The same occurrence, `by` bytes later in the text.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Occurrence {
        self.at += by;
        self.edits = self
            .edits
            .into_iter()
            .map(|edit| edit.shifted(by))
            .collect();
        self
    }

    /// Turns it into a reference that must not be changed, with the reason `why`.
    pub fn leave(&mut self, why: impl Into<String>) {
        self.meaning = ReferenceMeaning::left(why);
        self.edits.clear();
    }

    /// `file:line:column`, and the position in the decoded content if the value is encoded.
    pub fn position_in(&self, file: &str) -> String {
        let inside = self
            .inside
            .as_ref()
            .map(|inside| format!(" ({inside})"))
            .unwrap_or_default();
        format!("{file}:{}:{}{inside}", self.line, self.column)
    }

    /// Whether a rewrite changes it.
    pub fn is_change(&self) -> bool {
        matches!(self.meaning, ReferenceMeaning::Known { .. })
    }
}

/// The role of a reference, which decides the meaning of a missing tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceRole {
    /// The `image` of a container or an image volume. Without a tag, it means `latest`.
    Container,
    /// The value of another key that is named after an image.
    Image,
    /// A reference in parts. Without a tag, the tag is set elsewhere.
    Repository,
    /// The prefix that several references share, such as `global.imageRegistry`.
    Prefix,
    /// Any other value of a document.
    #[default]
    Value,
    /// A word of a text: an argument, a script, a template.
    Text,
    /// A word of a text that is certainly an image, although the lock does not contain it: a
    /// literal in the call of a template (`{{ image "a/b:1" }}`), the value of a key that is named
    /// after an image (`--image=a/b:1`), an image of a Dockerfile, or one after `docker://`.
    Literal,
    /// The URL of a file or a git repository.
    Url,
}

impl ReferenceRole {
    /// Whether the position requires an image, even if the value does not look like a reference.
    pub fn is_image(self) -> bool {
        matches!(
            self,
            ReferenceRole::Container | ReferenceRole::Image | ReferenceRole::Repository
        )
    }
}

// Edits of a text: byte ranges and their replacements.

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
