//! Input files and places in them, from which faults are made.

use super::Location;
use crate::document::{Diagnostic, Node, line_column};
use std::ops::Range;
use std::rc::Rc;

/// An input file with the places of its values.
#[derive(Debug)]
pub(super) struct SourceText {
    /// The file as the user named it.
    pub(super) file: String,
    /// Its content.
    pub(super) text: String,
    /// The places; one empty node where the file is no YAML.
    pub(super) root: Node,
}

/// A place in a [`SourceText`].
#[derive(Debug, Clone)]
pub(super) struct SourceSpan {
    text: Rc<SourceText>,
    range: Range<usize>,
}

impl SourceText {
    /// A YAML file.
    pub(super) fn yaml(file: String, text: String) -> Rc<SourceText> {
        let root = Node::parse(&text).unwrap_or_default();
        Rc::new(SourceText { file, text, root })
    }

    /// A file that is no YAML.
    pub(super) fn plain(file: String, text: String) -> Rc<SourceText> {
        Rc::new(SourceText { file, text, root: Node::default() })
    }
}

impl SourceSpan {
    pub(super) fn new(text: &Rc<SourceText>, range: Range<usize>) -> SourceSpan {
        SourceSpan { text: text.clone(), range }
    }

    /// The same, narrowed to `part` where that is written in it.
    pub(super) fn narrowed(&self, part: &str) -> SourceSpan {
        let at = self.written().find(part).map(|at| self.range.start + at);
        let range = at.map_or(self.range.clone(), |start| start..start + part.len());
        SourceSpan { text: self.text.clone(), range }
    }

    /// What is written there.
    pub(super) fn written(&self) -> &str {
        self.text.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Whether both are in one file.
    pub(super) fn same_file(&self, other: &SourceSpan) -> bool {
        Rc::ptr_eq(&self.text, &other.text)
    }

    pub(super) fn location(&self) -> Location {
        let (line, column) = line_column(&self.text.text, self.range.start);
        Location { file: self.text.file.clone(), line, column }
    }

    /// The fault `message` here, with what to write instead.
    pub(super) fn fault(&self, message: impl Into<String>, help: Option<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.text.file.clone(),
            text: self.text.text.clone(),
            span: self.range.clone(),
            message: message.into(),
            help,
        })
    }
}
