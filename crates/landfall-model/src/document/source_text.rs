//! Input files with the places of their values, and errors that point at a place.

use super::diagnostic::Diagnostic;
use super::line_index::LineIndex;
use super::location::Location;
use super::spans::Node;
use std::ops::Range;
use std::rc::Rc;

/// An input file with the places of its values.
#[derive(Debug)]
pub struct SourceText {
    /// The file as the user named it.
    pub file: String,
    /// Its content.
    pub text: LineIndex<'static>,
    /// The places of the values; one empty node where the file is not YAML.
    pub root: Node,
}

/// A place in a [`SourceText`].
#[derive(Debug, Clone)]
pub struct SourceSpan {
    text: Rc<SourceText>,
    range: Range<usize>,
}

impl SourceText {
    /// A YAML file.
    pub fn yaml(file: String, text: String) -> Rc<SourceText> {
        let root = Node::parse(&text).unwrap_or_default();
        Rc::new(SourceText {
            file,
            text: LineIndex::new(text),
            root,
        })
    }

    /// The same file with the places of the values in `left`, which has blanks where `self` has
    /// values that do not count.
    pub(super) fn with_places_of(&self, left: &str) -> Rc<SourceText> {
        let root = Node::parse(left).unwrap_or_default();
        Rc::new(SourceText {
            file: self.file.clone(),
            text: LineIndex::new(self.text.to_string()),
            root,
        })
    }

    /// A file that is not YAML.
    pub fn plain(file: String, text: String) -> Rc<SourceText> {
        Rc::new(SourceText {
            file,
            text: LineIndex::new(text),
            root: Node::default(),
        })
    }
}

impl SourceSpan {
    /// The bytes `range` of `text`.
    pub fn new(text: &Rc<SourceText>, range: Range<usize>) -> SourceSpan {
        SourceSpan {
            text: text.clone(),
            range,
        }
    }

    /// The part of the place where `part` is written; the whole place if it is not found.
    #[must_use]
    pub fn narrowed(&self, part: &str) -> SourceSpan {
        let at = self.written().find(part).map(|at| self.range.start + at);
        let range = at.map_or(self.range.clone(), |start| start..start + part.len());
        SourceSpan {
            text: self.text.clone(),
            range,
        }
    }

    /// The text at this place.
    pub fn written(&self) -> &str {
        self.text.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Whether both are in one file.
    pub fn same_file(&self, other: &SourceSpan) -> bool {
        Rc::ptr_eq(&self.text, &other.text)
    }

    /// Its start, for people.
    pub fn location(&self) -> Location {
        let (line, column) = self.text.text.line_column(self.range.start);
        Location {
            file: self.text.file.clone(),
            line,
            column,
        }
    }

    /// An error at this place, with what to write instead.
    pub fn fault(&self, message: impl Into<String>, help: Option<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.text.file.clone(),
            text: self.text.text.to_string(),
            span: self.range.clone(),
            message: message.into(),
            help,
        })
    }
}
