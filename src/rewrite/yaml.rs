//! YAML with byte spans: documents as trees of nodes that know where their scalars stand.

use granit_parser::{Event, Options, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The text is no YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotYaml;

/// One document of a stream.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    pub(super) root: Option<Node<'a>>,
    /// Values of anchored scalars, by the anchor's number.
    anchors: BTreeMap<usize, String>,
    /// Numbers of the anchors that an alias refers to.
    aliased: BTreeSet<usize>,
}

/// A node. The parser bounds how deep nodes nest.
#[derive(Debug)]
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

#[derive(Debug)]
pub(super) struct Scalar<'a> {
    pub(super) value: Cow<'a, str>,
    pub(super) style: ScalarStyle,
    /// Its bytes in the source, quotes included.
    pub(super) span: Range<usize>,
    /// The number of its anchor, 0 for none.
    anchor: usize,
    tag: Option<Tag>,
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
        self.tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema_tag("binary"))
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

/// Every document of the stream `source`.
///
/// # Errors
/// When the text is no YAML.
pub(super) fn parse(source: &str) -> Result<Vec<Document<'_>>, NotYaml> {
    // comments are not needed: no byte outside the scalars is touched
    let options: Options = granit_parser::options! { emit_comments: false };
    let mut documents = Vec::new();
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(source, options) {
        let (event, span) = event.map_err(|_| NotYaml)?;
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let span = span.byte_range().unwrap_or_default();
                let tag = tag.map(Cow::into_owned);
                let scalar = Scalar { value, style, span, anchor, tag };
                if let Some(text) = scalar.text().filter(|_| anchor != 0) {
                    builder.document.anchors.insert(anchor, text.into());
                }
                builder.add(Node::Scalar(scalar));
            }
            Event::Alias(id) => {
                builder.document.aliased.insert(id);
                builder.add(Node::Alias(id, span.byte_range().unwrap_or_default().start));
            }
            Event::SequenceStart(_, anchor, _) => builder.open.push(Open::Sequence(Vec::new(), anchor)),
            Event::MappingStart(_, anchor, _) => builder.open.push(Open::Mapping(Vec::new(), None, anchor)),
            Event::SequenceEnd | Event::MappingEnd => builder.close(),
            Event::DocumentEnd => documents.push(std::mem::take(&mut builder.document)),
            _ => {}
        }
    }
    Ok(documents)
}

/// The bytes of the comments of `source`, which is YAML.
pub(super) fn comments(source: &str) -> Vec<Range<usize>> {
    let events = Parser::new_from_str(source).map_while(Result::ok);
    let comments = events.filter(|(event, _)| matches!(event, Event::Comment(..)));
    comments.filter_map(|(_, span)| span.byte_range()).collect()
}

/// Collections that have begun and not ended.
enum Open<'a> {
    Sequence(Vec<Node<'a>>, usize),
    /// With the key whose value is awaited.
    Mapping(Vec<(Node<'a>, Node<'a>)>, Option<Node<'a>>, usize),
}

#[derive(Default)]
struct Builder<'a> {
    open: Vec<Open<'a>>,
    document: Document<'a>,
}

impl<'a> Builder<'a> {
    fn add(&mut self, node: Node<'a>) {
        match self.open.last_mut() {
            None => self.document.root = Some(node),
            Some(Open::Sequence(items, _)) => items.push(node),
            Some(Open::Mapping(entries, key, _)) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::Sequence(items, anchor)) => self.add(Node::Sequence(items, anchor)),
            Some(Open::Mapping(entries, _, anchor)) => self.add(Node::Mapping(entries, anchor)),
            None => {}
        }
    }
}

/// Whether `new` is `old` with the values at the starts of the spans in `changed` replaced. A changed
/// plain scalar may have become a quoted one.
pub(super) fn is_mapped(old: &[Document], new: &[Document], changed: &BTreeMap<usize, String>) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| match (&old.root, &new.root) {
            (Some(old), Some(new)) => same(old, new, changed),
            (old, new) => old.is_none() && new.is_none(),
        })
}

fn same(old: &Node, new: &Node, changed: &BTreeMap<usize, String>) -> bool {
    match (old, new) {
        (Node::Scalar(old), Node::Scalar(new)) => {
            let value = match changed.get(&old.span.start) {
                Some(value) => new.value == *value,
                None => new.value == old.value && new.style == old.style,
            };
            value && old.tag == new.tag && old.anchor == new.anchor
        }
        (Node::Sequence(old, a), Node::Sequence(new, b)) => {
            a == b && old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new, changed))
        }
        (Node::Mapping(old, a), Node::Mapping(new, b)) => {
            a == b
                && old.len() == new.len()
                && old.iter().zip(new).all(|((old_key, old), (new_key, new))| {
                    same(old_key, new_key, changed) && same(old, new, changed)
                })
        }
        (Node::Alias(old, _), Node::Alias(new, _)) => old == new,
        _ => false,
    }
}
