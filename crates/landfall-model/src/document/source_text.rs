//! Input files with the positions of their values, and errors that point at them.

use super::diagnostic::Diagnostic;
use super::yaml_tree::YamlNode;
use std::borrow::Cow;
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
    pub fn fault(&self, message: impl Into<String>, help: Option<&str>) -> Box<Diagnostic> {
        Box::new(Diagnostic {
            file: self.text.file.clone(),
            text: self.text.text.to_string(),
            span: self.range.clone(),
            message: message.into(),
            help: help.map(str::to_owned),
        })
    }
}

// Positions in input files, for messages.

/// A position in an input file; displayed as `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{file}:{line}:{column}")]
pub struct SourceLocation {
    /// The file as the user named it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// A text with an index of its lines and characters, so that finding the positions of a million
/// values does not count from the start each time.
#[derive(Debug, derive_more::Deref)]
pub struct LineIndex<'t> {
    #[deref(forward)]
    text: Cow<'t, str>,
    /// The offset of the first byte of each line.
    starts: Vec<usize>,
    /// The number of characters before each block. A whole file may be one line, so an index of
    /// lines would not be enough.
    blocks: Vec<usize>,
}

/// The size of a block, in bytes. A look-up counts characters in at most two blocks.
const BLOCK: usize = 1 << 10;

impl<'t> LineIndex<'t> {
    /// Creates the index in one pass over `text`.
    pub fn new(text: impl Into<Cow<'t, str>>) -> LineIndex<'t> {
        let text = text.into();
        let starts = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let starts = std::iter::once(0).chain(starts).collect();
        let count = |sum: &mut usize, block: &[u8]| {
            let before = *sum;
            *sum += characters(block);
            Some(before)
        };
        let blocks = text.as_bytes().chunks(BLOCK).scan(0, count).collect();
        LineIndex {
            text,
            starts,
            blocks,
        }
    }

    /// Line and column of the byte `at`, both counted from 1, the column in characters. Byte order
    /// marks at the start of the line are not counted.
    pub fn line_column(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self
            .starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let rest = self.text.get(start..at).unwrap_or_default();
        let marks = rest.chars().take_while(|c| *c == '\u{feff}').count();
        (line, self.before(at) - self.before(start) - marks + 1)
    }

    /// The number of characters that begin before the byte `at`.
    fn before(&self, at: usize) -> usize {
        let block = (at / BLOCK).min(self.blocks.len().saturating_sub(1));
        let counted = self.blocks.get(block).copied().unwrap_or_default();
        counted + characters(&self.text.as_bytes()[block * BLOCK..at])
    }
}

/// The number of UTF-8 characters that begin in `bytes`: continuation bytes are not counted.
fn characters(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .filter(|byte| !matches!(byte, 0x80..=0xbf))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn positions_equal_a_count_from_the_start(
            text in "(\u{feff}|[aé€😀]{0,700}|\r?\n){0,12}",
            part in 0.0..1.2f64,
        ) {
            let at = text.floor_char_boundary((text.len() as f64 * part) as usize);
            let before = &text[..at];
            let line = before.rsplit('\n').next().unwrap().trim_start_matches('\u{feff}');
            let expected = (before.matches('\n').count() + 1, line.chars().count() + 1);
            prop_assert_eq!(LineIndex::new(&*text).line_column(at), expected);
        }
    }
}
