//! One occurrence of a reference in a text: where it stands, what it means, and the edits that
//! rewrite it.

use super::edit::Edit;
use super::role::Role;
use landfall_model::ImageRef;

/// One occurrence of a reference in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// Where the reference stands in the decoded content, if it is encoded: `base64, line 3, column
    /// 8`.
    pub inside: Option<String>,
    /// The reference as written; the parts of a split one put together.
    pub written: String,
    /// What the place says about it.
    pub role: Role,
    /// What the lock says about it.
    pub meaning: Meaning,
    /// The offset of its first byte.
    pub at: usize,
    /// The edits that rewrite it. Where one encoded value holds several references, the first has
    /// the edit for all.
    pub edits: Vec<Edit>,
}

/// What the lock says about a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// It means a locked item.
    Known {
        /// The item's name, or its repository where the reference has no tag; of a URL with
        /// placeholders, the part before the first of them.
        item: String,
        /// What it becomes.
        to: String,
        /// The locked URLs that a URL with placeholders can become.
        reaches: Vec<String>,
    },
    /// It is at its destination already.
    Settled {
        /// The item that it means, where that is certain.
        item: Option<String>,
    },
    /// It concerns something locked, but must not be changed.
    Left {
        /// Why.
        why: String,
    },
    /// The lock has nothing like it.
    Unknown,
    /// It stands where an image should and cannot be read as one.
    Undecided {
        /// Why.
        why: String,
    },
}

impl Meaning {
    /// It must not be changed, because of `why`.
    pub fn left(why: impl Into<String>) -> Meaning {
        Meaning::Left { why: why.into() }
    }

    /// The meaning of `text`, which stands where an image does and is not known to the lock.
    pub fn of_unknown(text: &str) -> Option<Meaning> {
        if text.is_empty() {
            return None;
        }
        let placeholder = ["{{", "${", "$(", "__", "://"]
            .iter()
            .any(|sign| text.contains(sign));
        Some(match text.parse::<ImageRef>() {
            Ok(_) if !placeholder => Meaning::Unknown,
            _ => Meaning::unreadable(),
        })
    }

    /// It stands where an image should and is not an image reference.
    pub fn unreadable() -> Meaning {
        Meaning::Undecided {
            why: "it cannot be read as an image reference".into(),
        }
    }
}

impl Occurrence {
    /// An occurrence at the byte `at`, without edits; its line and column are counted later.
    pub fn new(at: usize, written: impl Into<String>, role: Role, meaning: Meaning) -> Occurrence {
        let (line, column, inside, edits) = (0, 0, None, Vec::new());
        Occurrence {
            line,
            column,
            inside,
            written: written.into(),
            role,
            meaning,
            at,
            edits,
        }
    }

    /// The same, `by` bytes further on.
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

    /// Makes it one that must not be changed.
    pub fn leave(&mut self, why: impl Into<String>) {
        self.meaning = Meaning::left(why);
        self.edits.clear();
    }

    /// `file:line:column`, and where in the decoded content, if it is encoded.
    pub fn place(&self, file: &str) -> String {
        let inside = self
            .inside
            .as_ref()
            .map(|inside| format!(" ({inside})"))
            .unwrap_or_default();
        format!("{file}:{}:{}{inside}", self.line, self.column)
    }

    /// Whether it is to be changed.
    pub fn is_change(&self) -> bool {
        matches!(self.meaning, Meaning::Known { .. })
    }
}
