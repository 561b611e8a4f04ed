//! Block mappings and lists.

use super::reader::{LONGEST_KEY, Reader};
use crate::yaml::node::{Node, Scalar};

impl<'a> Reader<'a> {
    /// Reads a node that begins here, at `column`, in a collection at the column `parent`. The next
    /// line must belong to that collection or to one around it.
    pub(super) fn node(&mut self, column: isize, parent: isize) -> Option<Node<'a>> {
        self.enter()?;
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
                if is_key {
                    self.mapping(column, scalar)?
                } else {
                    Node::Scalar(scalar)
                }
            }
        };
        self.leave();
        let is_scalar = matches!(node, Node::Scalar(_));
        (self.column <= parent && !(is_scalar && parent < 0)).then_some(node)
    }

    /// Reads a list. Its first dash is here, at `column`.
    fn sequence(&mut self, column: isize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let spaces = self.skip_spaces();
            let item = match self.byte() {
                None | Some(b'\n' | b'#') => {
                    self.at -= spaces;
                    self.end_line()?;
                    // the other reader finds the position of an empty entry
                    (self.column > column).then_some(())?;
                    self.node(self.column, column)?
                }
                Some(_) => self.node(column + 1 + isize::try_from(spaces).ok()?, column)?,
            };
            items.push(item);
            if self.column != column || !self.is_dash() {
                return Some(Node::sequence(items, 0));
            }
        }
    }

    /// Reads a mapping at `column`. Its first key is read already; its colon is here.
    fn mapping(&mut self, column: isize, first: Scalar<'a>) -> Option<Node<'a>> {
        let mut entries = Vec::with_capacity(4);
        let mut key = first;
        loop {
            (self.at - key.span.start <= LONGEST_KEY).then_some(())?;
            let value = self.value(column)?;
            entries.push((Node::Scalar(key), value));
            if self.column != column {
                return (self.column < column).then_some(Node::mapping(entries, 0));
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

    /// Reads a scalar or flow collection that begins here, in a collection at the column `parent`,
    /// and the rest of its line.
    fn value_here(&mut self, parent: isize) -> Option<Node<'a>> {
        let node = match self.byte()? {
            b'"' | b'\'' => Node::Scalar(self.quoted(Some(parent))?),
            b'[' | b'{' => self.flow()?,
            style @ (b'|' | b'>') => {
                return self.block_scalar(parent, style == b'|').map(Node::Scalar);
            }
            _ => {
                let (scalar, is_key) = self.plain(parent)?;
                return (!is_key).then_some(Node::Scalar(scalar));
            }
        };
        self.end_line()?;
        Some(node)
    }
}
