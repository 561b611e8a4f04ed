//! Input files with the positions of their values, and errors that point at them.

use super::diagnostic::Diagnostic;
use super::line_index::LineIndex;
use super::location::SourceLocation;
use super::yaml_tree::YamlNode;
use std::ops::Range;
use std::rc::Rc;

/// An input file and the tree of its values.
#[derive(Debug)]
pub struct SourceText {
    /// The file as the user named it.
    pub file: String,
    /// The content of the file.
    pub text: LineIndex<'static>,
    /// The tree of the values. One empty node if the file is not YAML, so that every look-up in it
    /// leads to the beginning of the file.
    pub root: YamlNode<'static>,
}

/// A range of bytes in a [`SourceText`], to which messages point.
#[derive(Debug, Clone)]
pub struct SourceSpan {
    text: Rc<SourceText>,
    range: Range<usize>,
}

impl SourceText {
    /// An input file that should be YAML.
    pub fn yaml(file: String, text: String) -> Rc<SourceText> {
        let root = owned_tree(&text);
        Rc::new(SourceText {
            file,
            text: LineIndex::new(text),
            root,
        })
    }

    /// The same file with the tree of `remaining`, in which values with errors are blanked.
    pub(super) fn with_tree_of(&self, remaining: &str) -> Rc<SourceText> {
        Rc::new(SourceText {
            file: self.file.clone(),
            text: LineIndex::new(self.text.to_string()),
            root: owned_tree(remaining),
        })
    }

    /// A file that is not YAML.
    pub fn plain(file: String, text: String) -> Rc<SourceText> {
        Rc::new(SourceText {
            file,
            text: LineIndex::new(text),
            root: YamlNode::default(),
        })
    }
}

fn owned_tree(text: &str) -> YamlNode<'static> {
    YamlNode::parse(text).unwrap_or_default().into_owned()
}

impl SourceSpan {
    /// The bytes `range` of `text`.
    pub fn new(text: &Rc<SourceText>, range: Range<usize>) -> SourceSpan {
        SourceSpan {
            text: text.clone(),
            range,
        }
    }

    /// The first occurrence of `part` within this span; the whole span if there is none.
    #[must_use]
    pub fn narrowed(&self, part: &str) -> SourceSpan {
        let at = self.written().find(part).map(|at| self.range.start + at);
        let range = at.map_or(self.range.clone(), |start| start..start + part.len());
        SourceSpan {
            text: self.text.clone(),
            range,
        }
    }

    /// The text of this span.
    pub fn written(&self) -> &str {
        self.text.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Whether both spans are in the same file.
    pub fn same_file(&self, other: &SourceSpan) -> bool {
        Rc::ptr_eq(&self.text, &other.text)
    }

    /// The file, line and column at which this span starts.
    pub fn location(&self) -> SourceLocation {
        let (line, column) = self.text.text.line_column(self.range.start);
        SourceLocation {
            file: self.text.file.clone(),
            line,
            column,
        }
    }

    /// An error about this span; `help` says what to write instead.
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
