//! The entry point of the reader, its position in a text and its moves, and the nodes that it
//! returns.

use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
};
use memchr::memchr;
use std::borrow::Cow;
use std::ops::Range;

/// The deepest nesting of nodes that is read here. The general parser, which has its own limit,
/// reads deeper nodes.
const MAX_DEPTH: usize = 64;
/// The longest simple key that is read here, in bytes. YAML 1.2.2 (7.4) allows 1024 characters.
pub(super) const MAX_KEY: usize = 1000;

/// A position in a text, between tokens.
pub(super) struct SimpleReader<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// The column of the first token of a line, if `at` is there; -1 after the last token.
    pub(super) column: isize,
    depth: usize,
}

impl<'a> SimpleReader<'a> {
    /// A reader that starts at the byte `at` of `text`.
    pub(super) fn new(text: &'a str, at: usize) -> SimpleReader<'a> {
        SimpleReader {
            text,
            bytes: text.as_bytes(),
            at,
            column: 0,
            depth: 0,
        }
    }

    /// Enters a node. `None` if it is nested too deeply.
    pub(super) fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    /// Leaves the node that was entered last.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.byte_at(self.at)
    }

    /// Whether there is a blank at `at`, or the end of a line or of the text.
    pub(super) fn is_blank_at(&self, at: usize) -> bool {
        matches!(self.byte_at(at), None | Some(b' ' | b'\n' | b'\t'))
    }

    /// Whether an entry of a block list begins here.
    pub(super) fn is_dash(&self) -> bool {
        self.byte() == Some(b'-') && self.is_blank_at(self.at + 1)
    }

    pub(super) fn skip_spaces(&mut self) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest
            .iter()
            .position(|byte| *byte != b' ')
            .unwrap_or(rest.len());
        self.at += count;
        count
    }

    /// Moves to the end of this line.
    pub(super) fn skip_line(&mut self) {
        self.at =
            memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |len| self.at + len);
    }

    /// Moves from the end of a node to the first token of a later line. `None` if there is
    /// anything but spaces, line breaks and comments between them.
    pub(super) fn end_line(&mut self) -> Option<()> {
        let spaces = self.skip_spaces();
        match self.byte() {
            None | Some(b'\n') => {}
            Some(b'#') if spaces > 0 => self.skip_line(),
            Some(_) => return None,
        }
        self.at = self.bytes.len().min(self.at + 1);
        self.next_line()
    }

    /// Moves from the beginning of a line to the first token of this line or of a later one.
    pub(super) fn next_line(&mut self) -> Option<()> {
        loop {
            let spaces = self.skip_spaces();
            match self.byte() {
                None => {
                    self.column = -1;
                    return Some(());
                }
                Some(b'\n') => {}
                Some(b'#') => self.skip_line(),
                Some(b'\t') => return None,
                Some(_) => {
                    self.column = isize::try_from(spaces).ok()?;
                    return Some(());
                }
            }
            self.at = self.bytes.len().min(self.at + 1);
        }
    }

    /// Whether the `:` of a block mapping is here.
    pub(super) fn is_colon(&self) -> bool {
        self.byte() == Some(b':') && self.is_blank_at(self.at + 1)
    }

    /// Whether `---` or `...` is here. At the beginning of a line, these begin and end documents.
    pub(super) fn is_marker(&self) -> bool {
        let rest = &self.bytes[self.at..];
        (rest.starts_with(b"---") || rest.starts_with(b"...")) && self.is_blank_at(self.at + 3)
    }

    /// Moves from the end of a line to the first token of the next line that is not empty. Returns
    /// the number of line breaks between them, and the indentation of that line.
    pub(super) fn breaks(&mut self) -> (usize, isize) {
        let mut breaks = 0;
        loop {
            self.at = self.bytes.len().min(self.at + 1);
            breaks += 1;
            let spaces = self.skip_spaces();
            if self.byte() != Some(b'\n') {
                // texts are shorter than this limit
                return (breaks, isize::try_from(spaces).unwrap_or(isize::MAX));
            }
        }
    }

    pub(super) fn skip_at_most(&mut self, limit: usize) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest
            .iter()
            .take(limit)
            .take_while(|byte| **byte == b' ')
            .count();
        self.at += count;
        count
    }
}

/// Adds the result of folding `breaks` line breaks between words.
pub(super) fn fold(value: &mut String, breaks: usize) {
    match breaks {
        1 => value.push(' '),
        _ => (1..breaks).for_each(|_| value.push('\n')),
    }
}

/// Whether a plain scalar must not begin with `byte`. The callers check quotes, `-`, `?` and `:`.
pub(super) fn is_indicator(byte: u8) -> bool {
    is_flow(byte)
        || matches!(
            byte,
            b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t'
        )
}

pub(super) fn is_flow(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

#[allow(
    clippy::option_option,
    reason = "outer: whether this reader can read it; inner: whether there is a document"
)]
/// Reads the document in the `part` of `source` (see `stream_parts`), if there is one.
pub(in crate::yaml) fn read<'a>(
    source: &'a str,
    part: &Range<usize>,
) -> Option<Option<YamlDocument<'a>>> {
    let text = &source[..part.end];
    if !is_printable(&source[part.clone()]) {
        return None;
    }
    let mut reader = SimpleReader::new(text, part.start);
    let marked =
        reader.bytes[part.clone()].starts_with(b"---") && reader.is_blank_at(part.start + 3);
    if marked {
        reader.at += 3;
        reader.end_line()?;
    } else {
        reader.next_line()?;
    }
    if reader.column < 0 {
        // the general parser knows where an empty document ends
        return (!marked).then_some(None);
    }
    let root = reader.node(reader.column, -1)?;
    Some(Some(YamlDocument::new(root)))
}

/// Whether YAML keeps every character unchanged, and all lines end with `\n`.
fn is_printable(text: &str) -> bool {
    let ascii = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let is_other = |c: char| matches!(c, '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    // without a branch, the compiler makes this loop process many bytes at a time
    text.bytes().fold(true, |all, byte| all & ascii(byte))
        || text.chars().all(|c| {
            if c.is_ascii() {
                ascii(c as u8)
            } else {
                is_other(c)
            }
        })
}

// Makes the nodes that the reader returns.

/// The null value of an entry without a value. As in the general parser, it is at the colon.
pub(super) fn omitted_value<'a>(colon: usize) -> YamlScalar<'a> {
    YamlScalar::new(Cow::Borrowed("~"), ScalarStyle::Plain, colon..colon)
}

/// A list without an anchor.
pub(super) fn list(mut items: Vec<YamlNode<'_>>, span: Range<usize>, flow: bool) -> YamlNode<'_> {
    // a file may have a million lists: their spare capacity would be most of the memory
    items.shrink_to_fit();
    YamlNode::Sequence(YamlSequence {
        items,
        span,
        flow,
        anchor: 0,
    })
}

/// The list `node`, with a span that begins at `start`.
pub(super) fn starting_at(mut node: YamlNode<'_>, start: usize) -> YamlNode<'_> {
    if let YamlNode::Sequence(sequence) = &mut node {
        sequence.span.start = start;
    }
    node
}

/// A mapping without an anchor.
pub(super) fn mapping(
    mut entries: Vec<YamlEntry<'_>>,
    span: Range<usize>,
    flow: bool,
) -> YamlNode<'_> {
    entries.shrink_to_fit();
    YamlNode::Mapping(YamlMapping {
        entries,
        span,
        flow,
        anchor: 0,
    })
}
