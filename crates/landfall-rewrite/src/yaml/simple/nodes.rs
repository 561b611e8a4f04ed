//! Makes the nodes that the reader returns.

use landfall_model::document::{
    ScalarStyle, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
};
use std::borrow::Cow;
use std::ops::Range;

/// The value of an entry without one. The general parser puts it at the colon, too.
pub(super) fn left_out<'a>(colon: usize) -> YamlScalar<'a> {
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

/// The list `node` as the general parser returns one in the column of its key: its bytes begin with
/// the first item, not with the dash.
pub(super) fn from_first_item(mut node: YamlNode<'_>) -> YamlNode<'_> {
    if let YamlNode::Sequence(sequence) = &mut node
        && let Some(first) = sequence.items.first()
    {
        sequence.span.start = first.span().start;
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
