//! Makes the nodes that the reader returns.

use landfall_model::document::{
    ScalarStyle, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
};
use std::borrow::Cow;
use std::ops::Range;

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
