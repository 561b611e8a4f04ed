//! The tree of a YAML document: nodes that know their bytes in the source.

use granit_parser::{ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The text is not YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotYaml;

/// One document of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Document<'a> {
    pub(crate) root: Option<Node<'a>>,
    /// Values of anchored scalars, by the anchor's number.
    pub(super) anchors: BTreeMap<usize, String>,
    /// Numbers of the anchors that an alias refers to.
    pub(super) aliased: BTreeSet<usize>,
}

/// A node. The parsers bound how deep nodes nest.
#[derive(Debug, PartialEq)]
pub(crate) enum Node<'a> {
    Scalar(Scalar<'a>),
    /// The items, and the anchor's number, 0 for none.
    Sequence(Vec<Node<'a>>, usize),
    /// The entries, and the anchor's number, 0 for none.
    Mapping(Vec<Entry<'a>>, usize),
    /// `*name`: the anchor's number, and the offset of its first byte.
    Alias(usize, usize),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Scalar<'a> {
    pub(crate) value: Cow<'a, str>,
    pub(crate) style: ScalarStyle,
    /// Its bytes in the source, including quotes.
    pub(crate) span: Range<usize>,
    /// The number of its anchor, 0 for none.
    pub(super) anchor: usize,
    pub(super) tag: Option<Box<Tag>>,
}

/// An entry of a mapping: key and value.
pub(crate) type Entry<'a> = (Node<'a>, Node<'a>);

impl<'a> Scalar<'a> {
    /// One without tag and anchor.
    pub(super) fn of(value: Cow<'a, str>, style: ScalarStyle, span: Range<usize>) -> Scalar<'a> {
        Scalar {
            value,
            style,
            span,
            anchor: 0,
            tag: None,
        }
    }

    /// The value of an entry that has none, at its colon.
    pub(super) fn nothing(colon: usize) -> Scalar<'a> {
        Scalar::of(Cow::Borrowed("~"), ScalarStyle::Plain, colon..colon)
    }

    /// The value, unless it is empty or null.
    pub(crate) fn text(&self) -> Option<&str> {
        let null = self.style == ScalarStyle::Plain
            && matches!(self.value.as_ref(), "~" | "null" | "Null" | "NULL" | "");
        (!null && !self.value.is_empty()).then_some(&*self.value)
    }

    /// Whether its tag says that it is base64.
    pub(crate) fn is_binary(&self) -> bool {
        let name = self
            .tag
            .as_ref()
            .and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
        name.as_deref() == Some("binary")
    }
}

impl<'a> Node<'a> {
    /// A list, without the room that its vector has to grow: a file may have a million of them.
    pub(super) fn sequence(mut items: Vec<Node<'a>>, anchor: usize) -> Node<'a> {
        items.shrink_to_fit();
        Node::Sequence(items, anchor)
    }

    /// A mapping, likewise.
    pub(super) fn mapping(mut entries: Vec<Entry<'a>>, anchor: usize) -> Node<'a> {
        entries.shrink_to_fit();
        Node::Mapping(entries, anchor)
    }
}

impl Node<'_> {
    /// The offset of its first byte; 0 for a collection.
    pub(crate) fn start(&self) -> usize {
        match self {
            Node::Scalar(scalar) => scalar.span.start,
            Node::Alias(_, start) => *start,
            Node::Sequence(..) | Node::Mapping(..) => 0,
        }
    }

    /// The scalar, where it is one.
    pub(crate) fn scalar(&self) -> Option<&Scalar<'_>> {
        match self {
            Node::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }
}

impl Document<'_> {
    /// The text of a scalar or of an alias of one, unless it is empty or null.
    pub(crate) fn text<'n>(&'n self, node: &'n Node<'_>) -> Option<&'n str> {
        match node {
            Node::Scalar(scalar) => scalar.text(),
            Node::Alias(id, _) => self.anchors.get(id).map(String::as_str),
            _ => None,
        }
    }

    /// Whether its root is a mapping or a list.
    pub(crate) fn is_structured(&self) -> bool {
        matches!(self.root, Some(Node::Mapping(..) | Node::Sequence(..)))
    }

    /// Whether an alias elsewhere stands for `scalar`.
    pub(crate) fn is_shared(&self, scalar: &Scalar<'_>) -> bool {
        self.aliased.contains(&scalar.anchor)
    }
}

/// The value under `key` in a mapping.
pub(crate) fn member<'n>(entries: &'n [Entry<'n>], key: &str) -> Option<&'n Node<'n>> {
    let is_it = |name: &Node<'_>| name.scalar().is_some_and(|name| name.value == key);
    entries
        .iter()
        .find(|(name, _)| is_it(name))
        .map(|(_, value)| value)
}

/// The text under `key` in a mapping, where it is a scalar that is neither empty nor null.
pub(crate) fn text<'n>(entries: &'n [Entry<'n>], key: &str) -> Option<&'n str> {
    member(entries, key)?.scalar()?.text()
}

/// The value under `key` in a mapping, where it is a scalar.
pub(crate) fn value<'n>(entries: &'n [Entry<'n>], key: &str) -> Option<&'n str> {
    member(entries, key)?.scalar().map(|scalar| &*scalar.value)
}
