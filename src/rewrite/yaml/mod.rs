//! YAML with byte spans: documents as trees of nodes that know where their scalars stand. `simple` reads
//! what nearly all of them are written in, and `granit`, ten times slower, everything else.

mod granit;
mod parts;
mod scalars;
mod simple;
#[cfg(test)]
mod tests;
mod trace;

pub(super) use granit::comments;
pub(super) use parts::parts;
pub(super) use trace::Trace;

use granit::Granit;
use granit_parser::{ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The text is no YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotYaml;

/// One document of a stream.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Document<'a> {
    pub(super) root: Option<Node<'a>>,
    /// Values of anchored scalars, by the anchor's number.
    anchors: BTreeMap<usize, String>,
    /// Numbers of the anchors that an alias refers to.
    aliased: BTreeSet<usize>,
}

/// A node. The parsers bound how deep nodes nest.
#[derive(Debug, PartialEq)]
pub(super) enum Node<'a> {
    Scalar(Scalar<'a>),
    /// With its anchor's number, 0 for none.
    Sequence(Vec<Node<'a>>, usize),
    /// With its anchor's number, 0 for none.
    Mapping(Vec<(Node<'a>, Node<'a>)>, usize),
    /// `*name`.
    /// With the place of its first byte.
    Alias(usize, usize),
}

#[derive(Debug, PartialEq)]
pub(super) struct Scalar<'a> {
    pub(super) value: Cow<'a, str>,
    pub(super) style: ScalarStyle,
    /// Its bytes in the source, quotes included.
    pub(super) span: Range<usize>,
    /// The number of its anchor, 0 for none.
    anchor: usize,
    tag: Option<Box<Tag>>,
}

impl<'a> Scalar<'a> {
    /// The value, unless it is empty or null.
    pub(super) fn text(&self) -> Option<&str> {
        let null = self.style == ScalarStyle::Plain
            && matches!(self.value.as_ref(), "~" | "null" | "Null" | "NULL" | "");
        (!null && !self.value.is_empty()).then_some(&*self.value)
    }

    /// Whether its tag says that it is base64.
    pub(super) fn is_binary(&self) -> bool {
        let name = self.tag.as_ref().and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
        name.as_deref() == Some("binary")
    }
}

/// Whether a reference or a part of one reads as a string when it is written without quotes.
pub(super) fn stays_text(new: &str) -> bool {
    let text = |value| matches!(value, serde_yaml::Value::String(text) if text == new);
    !new.contains(['[', ']']) && serde_yaml::from_str(new).is_ok_and(text)
}

impl Node<'_> {
    /// The place of its first byte; 0 for a collection.
    pub(super) fn start(&self) -> usize {
        match self {
            Node::Scalar(scalar) => scalar.span.start,
            Node::Alias(_, start) => *start,
            Node::Sequence(..) | Node::Mapping(..) => 0,
        }
    }

    /// The scalar, where it is one.
    pub(super) fn scalar(&self) -> Option<&Scalar<'_>> {
        match self {
            Node::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }
}

impl Document<'_> {
    /// The text of a scalar or of an alias of one, unless it is empty or null.
    pub(super) fn text<'n>(&'n self, node: &'n Node<'_>) -> Option<&'n str> {
        match node {
            Node::Scalar(scalar) => scalar.text(),
            Node::Alias(id, _) => self.anchors.get(id).map(String::as_str),
            _ => None,
        }
    }

    /// Whether its root is a mapping or a list.
    pub(super) fn is_structured(&self) -> bool {
        matches!(self.root, Some(Node::Mapping(..) | Node::Sequence(..)))
    }

    /// Whether an alias elsewhere stands for `scalar`.
    pub(super) fn is_shared(&self, scalar: &Scalar<'_>) -> bool {
        self.aliased.contains(&scalar.anchor)
    }
}

/// The documents of the stream `source`, one after the other, so that no more than one is held. The last
/// item is an error where the text is no YAML.
pub(super) fn documents(source: &str) -> Documents<'_> {
    Documents { source, parts: parts(source).into_iter(), slow: None }
}

/// The documents of one of the [`parts`] of `source`.
pub(super) fn documents_in(source: &str, part: Range<usize>) -> Documents<'_> {
    Documents { source, parts: vec![part].into_iter(), slow: None }
}

/// The documents of a stream.
pub(super) struct Documents<'a> {
    source: &'a str,
    parts: std::vec::IntoIter<Range<usize>>,
    slow: Option<Granit<'a>>,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.slow.as_mut().and_then(Granit::next) {
                Some(Ok(document)) => return Some(Ok(document)),
                Some(Err(error)) => {
                    (self.slow, self.parts) = (None, Vec::new().into_iter());
                    return Some(Err(error));
                }
                None => self.slow = None,
            }
            let part = self.parts.next()?;
            match simple::read(self.source, &part) {
                Some(None) => {}
                Some(Some(document)) => return Some(Ok(document)),
                None => self.slow = Some(Granit::new(self.source, part)),
            }
        }
    }
}
