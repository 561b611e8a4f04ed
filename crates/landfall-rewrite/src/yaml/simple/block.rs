//! Block mappings and lists.

use super::reader::{
    MAX_KEY, SimpleReader, is_flow, is_indicator, list, mapping, omitted_value, starting_at,
};
use landfall_model::document::{ScalarStyle, YamlEntry, YamlNode, YamlScalar};
use std::borrow::Cow;

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
