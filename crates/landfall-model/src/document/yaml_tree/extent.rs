//! The bytes to replace when a value gets a new text. For some values, they differ from the span in
//! the tree.

use super::node::{YamlEntry, YamlNode};
use std::ops::Range;

impl YamlNode<'_> {
    /// The bytes of this node in `text`. For a block scalar they begin with its header, unlike
    /// [`YamlNode::span`].
    pub(in crate::document) fn extent(&self, text: &str) -> Range<usize> {
        let span = self.span();
        match self {
            YamlNode::Scalar(scalar) if scalar.is_block() => {
                block_scalar_extent(text, &span).unwrap_or(span)
            }
            _ => span,
        }
    }

    /// The end of this node's content in `text`, without the blanks and comments that the span of a
    /// block collection includes.
    pub fn content_end(&self, text: &str) -> usize {
        let last = match self {
            YamlNode::Mapping(mapping) if !mapping.flow => {
                let last = mapping.entries.last();
                last.map(|entry| entry.content_end(text))
            }
            YamlNode::Sequence(sequence) if !sequence.flow => {
                let last = sequence.items.last();
                last.map(|item| item.content_end(text))
            }
            _ => None,
        };
        last.unwrap_or_else(|| self.extent(text).end)
    }
}

impl YamlEntry<'_> {
    /// The bytes of the value in `text`. An omitted value has an empty range after the colon of its
    /// key.
    pub(in crate::document) fn value_extent(&self, text: &str) -> Range<usize> {
        let extent = self.value.extent(text);
        let is_left_out = self.value.scalar().is_some() && extent.is_empty();
        let key_end = self.key.span().end;
        match text.get(key_end..).and_then(|rest| rest.find(':')) {
            Some(colon) if is_left_out => key_end + colon + 1..key_end + colon + 1,
            _ => extent,
        }
    }

    /// The end of the content of the value in `text`.
    pub(in crate::document) fn content_end(&self, text: &str) -> usize {
        match self.value {
            YamlNode::Scalar(_) | YamlNode::Alias(_) => self.value_extent(text).end,
            YamlNode::Sequence(_) | YamlNode::Mapping(_) => self.value.content_end(text),
        }
    }
}

/// The bytes of a block scalar from its `|` or `>` to the end of its last line. The parser's range
/// begins at the first word, and includes the white space before the next node.
fn block_scalar_extent(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    // a comment may follow the header on its line, and contain `|` or `>` too
    let before = text.get(..span.start)?.trim_end();
    let line = before.rfind('\n').map_or(0, |newline| newline + 1);
    let header = before[line..].split(" #").next().unwrap_or_default();
    let start = line + header.rfind(['|', '>'])?;
    let end = start + text.get(start..span.end)?.trim_end().len();
    let end = text[end..]
        .find('\n')
        .map_or(text.len(), |newline| end + newline + 1);
    Some(start..end)
}
