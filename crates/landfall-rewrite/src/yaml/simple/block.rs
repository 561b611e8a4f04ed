//! Block mappings and lists.

use super::nodes::{list, mapping, omitted_value, starting_at};
use super::reader::{MAX_KEY, SimpleReader};
use landfall_model::document::{YamlEntry, YamlNode, YamlScalar};

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
