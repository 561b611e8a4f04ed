//! Flow collections and their scalars.

use super::nodes::{list, mapping, omitted_value};
use super::reader::{MAX_KEY, SimpleReader, is_flow, is_indicator};
use landfall_model::document::{ScalarStyle, YamlEntry, YamlNode, YamlScalar};
use std::borrow::Cow;

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
