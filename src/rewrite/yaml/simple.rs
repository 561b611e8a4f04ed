//! A reader of the YAML that nearly all manifests are written in: block mappings and lists, scalars of every style,
//! and flow collections. It gives what `granit` gives, to the byte, and steps aside (`None`) at anything else: tags,
//! anchors, explicit keys, directives, tabs between tokens, text that is no YAML.

use super::{Document, Node, Scalar};
use granit_parser::ScalarStyle;
use memchr::memchr;
use std::ops::Range;

/// How deep collections may nest here; what is deeper is read by the other reader, within its own bounds.
const DEEPEST: usize = 64;
/// The longest simple key that is read here, in bytes; the specification allows 1024 characters.
const LONGEST_KEY: usize = 1000;

/// The document of the `part` of `source` (see `parts`), if there is one in it.
pub(super) fn read<'a>(source: &'a str, part: &Range<usize>) -> Option<Option<Document<'a>>> {
    let text = &source[..part.end];
    if !is_printable(&source[part.clone()]) {
        return None;
    }
    let mut reader = Reader { text, bytes: text.as_bytes(), at: part.start, column: 0, depth: 0 };
    let marked = reader.bytes[part.clone()].starts_with(b"---") && reader.is_blank_at(part.start + 3);
    if marked {
        reader.at += 3;
        reader.end_line()?;
    } else {
        reader.next_line()?;
    }
    if reader.column < 0 {
        // what an empty document ends with is left to the other reader
        return (!marked).then_some(None);
    }
    let root = reader.node(reader.column, -1)?;
    Some(Some(Document { root: Some(root), ..Document::default() }))
}

/// Whether every character is one that stands for itself in any YAML, and lines end with `\n` alone.
fn is_printable(text: &str) -> bool {
    let ascii = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let is_other =
        |c: char| matches!(c, '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
    // a sum without a branch is done many bytes at a time
    text.bytes().fold(true, |all, byte| all & ascii(byte))
        || text.chars().all(|c| if c.is_ascii() { ascii(c as u8) } else { is_other(c) })
}

/// A place in a text, between tokens.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// That of the first token of a line, where `at` stands; -1 where there is none any more.
    pub(super) column: isize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.byte_at(self.at)
    }

    /// Whether a line or the text ends at `at`, or a blank stands there.
    pub(super) fn is_blank_at(&self, at: usize) -> bool {
        matches!(self.byte_at(at), None | Some(b' ' | b'\n' | b'\t'))
    }

    /// Whether an entry of a block list begins here.
    fn is_dash(&self) -> bool {
        self.byte() == Some(b'-') && self.is_blank_at(self.at + 1)
    }

    pub(super) fn skip_spaces(&mut self) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
        self.at += count;
        count
    }

    /// To the end of this line.
    fn skip_line(&mut self) {
        self.at = memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |len| self.at + len);
    }

    /// After a node: to the first token of a line to come, over nothing but blanks and comments.
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

    /// At the beginning of a line: to the first token of this line or of one to come.
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

    /// A node in a collection that stands at the column `parent`; it begins here, at `column`. What follows it must
    /// be a further part of that collection, or of one around it.
    fn node(&mut self, column: isize, parent: isize) -> Option<Node<'a>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let node = match self.byte()? {
            b'-' if self.is_blank_at(self.at + 1) => self.sequence(column)?,
            b'"' | b'\'' => {
                let scalar = self.quoted(Some(parent))?;
                match self.is_colon() {
                    true => self.mapping(column, scalar)?,
                    false => {
                        self.end_line()?;
                        Node::Scalar(scalar)
                    }
                }
            }
            b'[' | b'{' | b'|' | b'>' => self.value_here(parent)?,
            _ => {
                let (scalar, is_key) = self.plain(parent)?;
                if is_key { self.mapping(column, scalar)? } else { Node::Scalar(scalar) }
            }
        };
        self.depth -= 1;
        let is_scalar = matches!(node, Node::Scalar(_));
        (self.column <= parent && !(is_scalar && parent < 0)).then_some(node)
    }

    /// Whether the `:` of a block mapping stands here.
    fn is_colon(&self) -> bool {
        self.byte() == Some(b':') && self.is_blank_at(self.at + 1)
    }

    /// A list whose first dash is here, at `column`.
    fn sequence(&mut self, column: isize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let spaces = self.skip_spaces();
            let item = match self.byte() {
                None | Some(b'\n' | b'#') => {
                    self.at -= spaces;
                    self.end_line()?;
                    // where an entry without content stands is left to the other reader
                    (self.column > column).then_some(())?;
                    self.node(self.column, column)?
                }
                Some(_) => self.node(column + 1 + isize::try_from(spaces).ok()?, column)?,
            };
            items.push(item);
            if self.column != column || !self.is_dash() {
                return Some(Node::Sequence(items, 0));
            }
        }
    }

    /// A mapping at `column`, whose first key has been read up to its colon.
    fn mapping(&mut self, column: isize, first: Scalar<'a>) -> Option<Node<'a>> {
        let mut entries = Vec::with_capacity(4);
        let mut key = first;
        loop {
            (self.at - key.span.start <= LONGEST_KEY).then_some(())?;
            let value = self.value(column)?;
            entries.push((Node::Scalar(key), value));
            if self.column != column {
                return (self.column < column).then_some(Node::Mapping(entries, 0));
            }
            key = match self.byte()? {
                b'"' | b'\'' => self.quoted(None)?,
                b'-' if self.is_blank_at(self.at + 1) => return None,
                _ => self.plain_key()?,
            };
            self.is_colon().then_some(())?;
        }
    }

    /// The value of an entry of the mapping at `column`, whose colon is here.
    fn value(&mut self, column: isize) -> Option<Node<'a>> {
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
                    return self.sequence(column).filter(|_| self.column <= column);
                }
                Some(Node::Scalar(Scalar::nothing(colon)))
            }
            Some(b'-') if self.is_blank_at(self.at + 1) => None,
            Some(_) => self.value_here(column).filter(|_| self.column <= column),
        }
    }

    /// A scalar or flow collection that begins here, below the column `parent`, and what follows on its line.
    fn value_here(&mut self, parent: isize) -> Option<Node<'a>> {
        let node = match self.byte()? {
            b'"' | b'\'' => Node::Scalar(self.quoted(Some(parent))?),
            b'[' | b'{' => self.flow()?,
            style @ (b'|' | b'>') => return self.block_scalar(parent, style == b'|').map(Node::Scalar),
            _ => {
                let (scalar, is_key) = self.plain(parent)?;
                return (!is_key).then_some(Node::Scalar(scalar));
            }
        };
        self.end_line()?;
        Some(node)
    }

    /// A flow collection that begins here.
    fn flow(&mut self) -> Option<Node<'a>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let is_sequence = self.byte() == Some(b'[');
        self.at += 1;
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        while !matches!(self.flow_space()?, b']' | b'}') {
            if is_sequence {
                items.push(self.flow_node()?);
            } else {
                let key = self.flow_scalar()?;
                let quoted = key.style != ScalarStyle::Plain;
                let is_colon = self.byte() == Some(b':') && (quoted || self.is_blank_at(self.at + 1));
                (is_colon && self.at - key.span.start <= LONGEST_KEY).then_some(())?;
                let colon = self.at;
                self.at += 1;
                let value = match self.flow_space()? {
                    b',' | b'}' => Node::Scalar(Scalar::nothing(colon)),
                    _ => self.flow_node()?,
                };
                entries.push((Node::Scalar(key), value));
            }
            match self.flow_space()? {
                b',' => self.at += 1,
                b']' | b'}' => {}
                _ => return None,
            }
        }
        let closed = self.byte() == Some(if is_sequence { b']' } else { b'}' });
        self.at += 1;
        self.depth -= 1;
        let node = if is_sequence { Node::Sequence(items, 0) } else { Node::Mapping(entries, 0) };
        closed.then_some(node)
    }

    /// A node in a flow collection.
    fn flow_node(&mut self) -> Option<Node<'a>> {
        match self.byte()? {
            b'[' | b'{' => self.flow(),
            _ => self.flow_scalar().map(Node::Scalar),
        }
    }

    /// To the next token in a flow collection; its first byte.
    fn flow_space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n') = self.byte() {
            self.at += 1;
        }
        self.byte().filter(|byte| !matches!(byte, b'#' | b'\t'))
    }
}
