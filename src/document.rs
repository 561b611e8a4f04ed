//! YAML documents that people wrote: typed reading, with errors that say where and what to do.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::de::DeserializeOwned;
use std::fmt;
use std::ops::Range;

/// A fault in an input file: place, line shown, mend named. Shown by commands that exit with 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the user named it.
    pub file: String,
    /// The whole text of the file.
    pub text: String,
    /// Byte range in `text` that is at fault.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Line and column of the fault, both counted from 1, the column in characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = &self.text[..self.span.start.min(self.text.len())];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_column();
        let end = self.span.end.clamp(self.span.start, self.text.len());
        let snippet = Snippet::source(&self.text)
            .path(None::<String>)
            .annotation(AnnotationKind::Primary.span(self.span.start.min(end)..end));
        let mut group = Level::ERROR.primary_title(&self.message).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        write!(f, "{}:{line}:{column}: {}", self.file, Renderer::plain().render(&[group]))
    }
}

impl std::error::Error for Diagnostic {}

/// Reads one YAML document into `T`.
///
/// # Errors
/// A [`Diagnostic`] with the place, where the document is no YAML or has not the shape of `T`.
pub fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Box<Diagnostic>> {
    serde_yaml::from_str(text).map_err(|error| {
        let start = error.location().map_or(0, |at| at.index().min(text.len()));
        let start = (0..=start).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let rest = &text[start..];
        let word = rest.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(rest.len());
        Box::new(Diagnostic {
            file: file.into(),
            text: text.into(),
            span: start..start + word,
            message: error.to_string(),
            help: None,
        })
    })
}
