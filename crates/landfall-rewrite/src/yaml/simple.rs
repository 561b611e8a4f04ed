//! A fast reader of simple YAML: block mappings and lists, scalars of every style, and flow
//! collections. Nearly all manifests are such YAML. The reader's result equals that of the general
//! parser, to the byte; `yaml/tests.rs` compares the two. The reader returns `None` for all other
//! YAML (tags, anchors, explicit keys, directives, tabs between tokens), which the general parser
//! then reads.
//!
//! There is one difference: as in `serde_yaml`, a quoted scalar may continue in the column of its
//! key. The general parser refuses such a document.
//!
//! Why a second reader: with it, a whole run is 1.8 times as fast. Processor time of `rewrite
//! --check` (listing, reading, rewriting and auditing all files) over public repositories, with
//! optimization:
//!
//! | repository | files | general parser alone | with this reader | ratio |
//! |---|---:|---:|---:|---:|
//! | argoproj/argo-cd | 2530 | 0.98 s | 0.41 s | 2.4 |
//! | kubermatic/kubermatic | 2886 | 1.41 s | 0.74 s | 1.9 |
//! | prometheus-community/helm-charts | 1002 | 0.62 s | 0.51 s | 1.2 |
//! | kubernetes-sigs/kustomize | 282 | 0.05 s | 0.03 s | 1.6 |
//!
//! In helm-charts, most files are templates, which are not valid YAML. If the general parser
//! becomes so fast that the ratio over all repositories (3.05 s to 1.68 s) falls below 1.5, remove
//! this module.

use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
};
use memchr::memchr;
use std::borrow::Cow;
use std::ops::Range;

// The entry point of the reader, its position in a text and its moves, and the nodes that it
// returns.

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

// Block mappings and lists.

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
pub(super) fn read<'a>(source: &'a str, part: &Range<usize>) -> Option<Option<YamlDocument<'a>>> {
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

impl<'a> SimpleReader<'a> {
    /// Reads a node that begins here, at `column`, in a collection at the column `parent`. The line
    /// after the node must belong to that collection or to a collection around it.
    pub(super) fn node(&mut self, column: isize, parent: isize) -> Option<YamlNode<'a>> {
        self.enter()?;
        let node = match self.byte()? {
            b'-' if self.is_blank_at(self.at + 1) => self.sequence(column)?,
            b'"' | b'\'' => {
                let scalar = self.quoted(Some(parent))?;
                if self.is_colon() {
                    self.mapping(column, scalar)?
                } else {
                    self.end_line()?;
                    YamlNode::Scalar(scalar)
                }
            }
            b'[' | b'{' | b'|' | b'>' => self.value_here(parent)?,
            _ => {
                let (scalar, is_key) = self.plain(parent)?;
                if is_key {
                    self.mapping(column, scalar)?
                } else {
                    YamlNode::Scalar(scalar)
                }
            }
        };
        self.leave();
        let is_scalar = matches!(node, YamlNode::Scalar(_));
        (self.column <= parent && !(is_scalar && parent < 0)).then_some(node)
    }

    /// Reads a list. Its first dash is here, at `column`.
    fn sequence(&mut self, column: isize) -> Option<YamlNode<'a>> {
        let start = self.at;
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let spaces = self.skip_spaces();
            let item = match self.byte() {
                None | Some(b'\n' | b'#') => {
                    self.at -= spaces;
                    self.end_line()?;
                    // an empty entry is left to the general parser, which finds its position
                    (self.column > column).then_some(())?;
                    self.node(self.column, column)?
                }
                Some(_) => self.node(column + 1 + isize::try_from(spaces).ok()?, column)?,
            };
            items.push(item);
            if self.column != column || !self.is_dash() {
                return Some(list(items, start..self.at, false));
            }
        }
    }

    /// Reads a mapping at `column`. Its first key is read already, and the colon of that key is
    /// here.
    fn mapping(&mut self, column: isize, first: YamlScalar<'a>) -> Option<YamlNode<'a>> {
        // most mappings of manifests have a few entries, and a growing vector costs copies
        let mut entries = Vec::with_capacity(4);
        let start = first.span.start;
        let mut key = first;
        loop {
            // beyond this length, the specification no longer guarantees that this is a key
            (self.at - key.span.start <= MAX_KEY).then_some(())?;
            let value = self.value(column)?;
            entries.push(YamlEntry {
                key: YamlNode::Scalar(key),
                value,
            });
            if self.column != column {
                let mapping = mapping(entries, start..self.at, false);
                return (self.column < column).then_some(mapping);
            }
            key = match self.byte()? {
                b'"' | b'\'' => self.quoted(None)?,
                b'-' if self.is_blank_at(self.at + 1) => return None,
                _ => self.plain_key()?,
            };
            self.is_colon().then_some(())?;
        }
    }

    /// Reads the value of an entry of the mapping at `column`. The colon is here.
    fn value(&mut self, column: isize) -> Option<YamlNode<'a>> {
        let colon = self.at;
        self.at += 1;
        let spaces = self.skip_spaces();
        match self.byte() {
            None | Some(b'\n' | b'#') => {
                self.at -= spaces;
                self.end_line()?;
                if self.column > column {
                    return self.node(self.column, column);
                }
                if self.column == column && self.is_dash() {
                    // for the general parser, a list in the column of its key begins after the
                    // first dash; if a comment follows the dash, that parser finds the position
                    let rest = &self.bytes[self.at + 1..];
                    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
                    let start = self.at + 1 + blanks;
                    (self.byte_at(start) != Some(b'#')).then_some(())?;
                    let list = self.sequence(column).filter(|_| self.column <= column)?;
                    return Some(starting_at(list, start));
                }
                Some(YamlNode::Scalar(omitted_value(colon)))
            }
            Some(b'-') if self.is_blank_at(self.at + 1) => None,
            Some(_) => self.value_here(column).filter(|_| self.column <= column),
        }
    }

    /// Reads a scalar or flow collection that begins here, in a collection at the column `parent`,
    /// and the rest of its line.
    fn value_here(&mut self, parent: isize) -> Option<YamlNode<'a>> {
        let node = match self.byte()? {
            b'"' | b'\'' => YamlNode::Scalar(self.quoted(Some(parent))?),
            b'[' | b'{' => self.flow()?,
            style @ (b'|' | b'>') => {
                return self
                    .block_scalar(parent, style == b'|')
                    .map(YamlNode::Scalar);
            }
            _ => {
                let (scalar, is_key) = self.plain(parent)?;
                return (!is_key).then_some(YamlNode::Scalar(scalar));
            }
        };
        self.end_line()?;
        Some(node)
    }
}

// Flow collections and their scalars.

impl<'a> SimpleReader<'a> {
    /// Reads a flow collection that begins here.
    pub(super) fn flow(&mut self) -> Option<YamlNode<'a>> {
        self.enter()?;
        let start = self.at;
        let is_sequence = self.byte() == Some(b'[');
        self.at += 1;
        let mut items = Vec::new();
        let mut entries = Vec::new();
        while !matches!(self.flow_space()?, b']' | b'}') {
            if is_sequence {
                items.push(self.flow_node()?);
            } else {
                let key = self.flow_scalar()?;
                let quoted = key.style != ScalarStyle::Plain;
                let is_colon =
                    self.byte() == Some(b':') && (quoted || self.is_blank_at(self.at + 1));
                (is_colon && self.at - key.span.start <= MAX_KEY).then_some(())?;
                let colon = self.at;
                self.at += 1;
                let value = match self.flow_space()? {
                    b',' | b'}' => YamlNode::Scalar(omitted_value(colon)),
                    _ => self.flow_node()?,
                };
                entries.push(YamlEntry {
                    key: YamlNode::Scalar(key),
                    value,
                });
            }
            match self.flow_space()? {
                b',' => self.at += 1,
                b']' | b'}' => {}
                _ => return None,
            }
        }
        let closed = self.byte() == Some(if is_sequence { b']' } else { b'}' });
        self.at += 1;
        self.leave();
        let node = if is_sequence {
            list(items, start..self.at, true)
        } else {
            mapping(entries, start..self.at, true)
        };
        closed.then_some(node)
    }

    /// Reads a node in a flow collection.
    fn flow_node(&mut self) -> Option<YamlNode<'a>> {
        match self.byte()? {
            b'[' | b'{' => self.flow(),
            _ => self.flow_scalar().map(YamlNode::Scalar),
        }
    }

    /// Moves to the next token in a flow collection. Returns its first byte.
    fn flow_space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n') = self.byte() {
            self.at += 1;
        }
        self.byte().filter(|byte| !matches!(byte, b'#' | b'\t'))
    }

    /// Reads a scalar of one line in a flow collection.
    fn flow_scalar(&mut self) -> Option<YamlScalar<'a>> {
        let start = self.at;
        match self.byte()? {
            b'"' | b'\'' => return self.quoted(None),
            b'-' => {
                let next = self.byte_at(start + 1)?;
                (!self.is_blank_at(start + 1) && !is_flow(next)).then_some(())?;
            }
            first => (!is_indicator(first) && !matches!(first, b'?' | b':')).then_some(())?,
        }
        (!self.is_marker()).then_some(())?;
        loop {
            let byte = self.byte()?;
            let ends = match byte {
                b':' => {
                    self.is_blank_at(self.at + 1) || self.byte_at(self.at + 1).is_some_and(is_flow)
                }
                b'\n' => true,
                b'\t' => return None,
                b'#' if self.bytes[self.at - 1] == b' ' => return None,
                byte => is_flow(byte),
            };
            if ends {
                break;
            }
            self.at += 1;
        }
        let value = self.text[start..self.at].trim_end_matches(' ');
        let end = start + value.len();
        // `a : b` and possible ends of a document are left to the general parser
        let odd = (self.byte() == Some(b':') && end < self.at) || value == "...";
        (!odd).then(|| YamlScalar::new(Cow::Borrowed(value), ScalarStyle::Plain, start..end))
    }
}
