//! Input files and places in them, from which faults are made.

use super::diagnostic::{Diagnostic, line_column};
use super::place::Place;
use super::spans::Node;
use std::ops::Range;
use std::rc::Rc;

/// An input file with the places of its values.
#[derive(Debug)]
pub struct Text {
    /// The file as the user named it.
    pub file: String,
    /// Its content.
    pub text: String,
    /// The places; one empty node where the file is no YAML.
    pub root: Node,
}

/// A place in a [`Text`].
#[derive(Debug, Clone)]
pub struct Spot {
    text: Rc<Text>,
    span: Range<usize>,
}

impl Text {
    /// A YAML file.
    pub fn yaml(file: String, text: String) -> Rc<Text> {
        let root = Node::parse(&text).unwrap_or_default();
        Rc::new(Text { file, text, root })
    }

    /// A file that is no YAML.
    pub fn plain(file: String, text: String) -> Rc<Text> {
        Rc::new(Text { file, text, root: Node::default() })
    }
}

impl Spot {
    /// The bytes `span` of `text`.
    pub fn new(text: &Rc<Text>, span: Range<usize>) -> Spot {
        Spot { text: text.clone(), span }
    }

    /// The same, narrowed to `part` where that is written in it.
    pub fn narrowed(&self, part: &str) -> Spot {
        let at = self.written().find(part).map(|at| self.span.start + at);
        let span = at.map_or(self.span.clone(), |start| start..start + part.len());
        Spot { text: self.text.clone(), span }
    }

    /// What is written there.
    pub fn written(&self) -> &str {
        self.text.text.get(self.span.clone()).unwrap_or_default()
    }

    /// Whether both are in one file.
    pub fn same_file(&self, other: &Spot) -> bool {
        Rc::ptr_eq(&self.text, &other.text)
    }

    /// Its start, for people.
    pub fn place(&self) -> Place {
        let (line, column) = line_column(&self.text.text, self.span.start);
        Place { file: self.text.file.clone(), line, column }
    }

    /// The fault `message` here, with what to write instead.
    pub fn fault(&self, message: impl Into<String>, help: Option<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.text.file.clone(),
            text: self.text.text.clone(),
            span: self.span.clone(),
            message: message.into(),
            help,
        })
    }
}
