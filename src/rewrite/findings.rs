//! What a scan finds: references, where they stand, what they mean, and the bytes to change.

use super::known::Position;
use super::yaml;
use serde::Serialize;
use std::ops::Range;

/// A reference that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// Where in it the reference stands, if that is encoded: `base64, line 3, column 8`.
    pub inside: Option<String>,
    /// The reference as written; the parts of a split one put together.
    pub written: String,
    /// Where it stands.
    pub position: Position,
    /// What the lock says to it.
    pub meaning: Meaning,
    /// The place of its first byte.
    pub(super) at: usize,
    /// What to change. Where several references stand in one encoded value, the first has it for all.
    pub(super) splices: Vec<Splice>,
}

/// What the lock says to a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// It means a locked item.
    Known {
        /// The item's name, or its repository where the reference has no tag; of a URL with placeholders,
        /// what stands before the first of them.
        item: String,
        /// What it is to be.
        to: String,
        /// The locked URLs that a URL with placeholders can become.
        reaches: Vec<String>,
    },
    /// It stands at its destination.
    Settled {
        /// The item that it means, where that is sure.
        item: Option<String>,
    },
    /// The lock has to do with it, but it must not be changed.
    Left {
        /// Why.
        why: String,
    },
    /// The lock has nothing to do with it.
    Unknown,
    /// It stands where an image should and cannot be read as one.
    Undecided {
        /// Why.
        why: String,
    },
}

/// Bytes to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes of the text.
    pub span: Range<usize>,
    /// What they are replaced by.
    pub bytes: String,
}

impl Splice {
    /// Whether a YAML scalar of any style goes on reading as it did but for this, wherever in it the bytes stand:
    /// neither what goes nor what comes has a byte that means something else than itself.
    pub(super) fn is_literal(&self, source: &str) -> bool {
        let literal = |text: &str| {
            let ends = [text.bytes().next(), text.bytes().next_back()];
            ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte))
        };
        literal(&source[self.span.clone()]) && literal(&self.bytes)
    }
}

/// How a text was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAs {
    /// As YAML, which JSON is too.
    Yaml,
    /// Word by word.
    Text,
    /// Not at all: no word of the lock is in it.
    Nothing,
}

/// Everything that was found in a text, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The references.
    pub found: Vec<Finding>,
    /// How the text was read.
    pub read_as: ReadAs,
    /// The bytes of values in Secrets.
    pub secrets: Vec<Range<usize>>,
}

impl Finding {
    /// One at the byte `at`, whose line and column are counted later.
    pub(super) fn new(
        at: usize,
        written: impl Into<String>,
        position: Position,
        meaning: Meaning,
    ) -> Finding {
        let (line, column, inside, splices) = (0, 0, None, Vec::new());
        Finding { line, column, inside, written: written.into(), position, meaning, at, splices }
    }

    pub(super) fn leave(&mut self, why: impl Into<String>) {
        self.meaning = Meaning::Left { why: why.into() };
        self.splices.clear();
    }

    /// Whether it is to be changed.
    pub fn is_change(&self) -> bool {
        matches!(self.meaning, Meaning::Known { .. })
    }
}

impl Findings {
    pub(super) fn nothing() -> Findings {
        Findings { found: Vec::new(), read_as: ReadAs::Nothing, secrets: Vec::new() }
    }

    /// What to change, in the order of the text.
    pub fn splices(&self) -> Vec<&Splice> {
        splices(&self.found)
    }

    /// Sorts by place, and counts lines and columns in `text`.
    pub(super) fn placed(mut self, text: &str) -> Findings {
        self.found.sort_by_key(|finding| finding.at);
        let (mut line, mut start, mut seen) = (1, 0, 0);
        for finding in &mut self.found {
            let at = finding.at.clamp(seen, text.len());
            for (gap, _) in text[seen..at].match_indices('\n') {
                (line, start) = (line + 1, seen + gap + 1);
            }
            seen = at;
            (finding.line, finding.column) =
                (line, text[start..at].trim_start_matches('\u{feff}').chars().count() + 1);
        }
        self
    }

    /// `text` with everything changed that is to be changed.
    pub(super) fn apply(&self, text: &str) -> String {
        apply(&self.found, text, 0..text.len())
    }
}

fn splices(found: &[Finding]) -> Vec<&Splice> {
    let mut splices: Vec<_> = found.iter().flat_map(|finding| &finding.splices).collect();
    splices.sort_by_key(|splice| (splice.span.start, splice.span.end));
    splices
}

/// A part of `text`, in which all of `found` stands, with everything changed that is to be changed.
pub(super) fn apply(found: &[Finding], text: &str, part: Range<usize>) -> String {
    let mut new = String::with_capacity(part.len() + 256);
    let mut done = part.start;
    for splice in splices(found) {
        new.push_str(&text[done..splice.span.start]);
        new.push_str(&splice.bytes);
        done = splice.span.end;
    }
    new.push_str(&text[done..part.end]);
    new
}

/// Whether `stays_text` holds for a plain scalar after a change, if it held before.
pub(super) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!yaml::stays_text(old) || yaml::stays_text(new))
}
