//! Flow collections and their scalars.

use super::reader::{LONGEST_KEY, Reader, is_flow, is_sign};
use crate::yaml::node::{Node, Scalar};
use granit_parser::ScalarStyle;
use std::borrow::Cow;

impl<'a> Reader<'a> {
    /// Reads a flow collection that begins here.
    pub(super) fn flow(&mut self) -> Option<Node<'a>> {
        self.enter()?;
        let is_sequence = self.byte() == Some(b'[');
        self.at += 1;
        let (mut items, mut entries) = (Vec::new(), Vec::new());
        while !matches!(self.flow_space()?, b']' | b'}') {
            if is_sequence {
                items.push(self.flow_node()?);
            } else {
                let key = self.flow_scalar()?;
                let quoted = key.style != ScalarStyle::Plain;
                let is_colon =
                    self.byte() == Some(b':') && (quoted || self.is_blank_at(self.at + 1));
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
        self.leave();
        let node = if is_sequence {
            Node::sequence(items, 0)
        } else {
            Node::mapping(entries, 0)
        };
        closed.then_some(node)
    }

    /// Reads a node in a flow collection.
    fn flow_node(&mut self) -> Option<Node<'a>> {
        match self.byte()? {
            b'[' | b'{' => self.flow(),
            _ => self.flow_scalar().map(Node::Scalar),
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
    fn flow_scalar(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        match self.byte()? {
            b'"' | b'\'' => return self.quoted(None),
            b'-' => {
                let next = self.byte_at(start + 1)?;
                (!self.is_blank_at(start + 1) && !is_flow(next)).then_some(())?;
            }
            first => (!is_sign(first) && !matches!(first, b'?' | b':')).then_some(())?,
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
        // the other reader reads `a : b`, and what may end a document
        let odd = (self.byte() == Some(b':') && end < self.at) || value == "...";
        (!odd).then(|| Scalar::of(Cow::Borrowed(value), ScalarStyle::Plain, start..end))
    }
}
