//! YAML with byte spans: documents as trees of nodes that know where their scalars stand.

use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
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

/// The documents of the stream `source`, one after the other, so that no more than one is held. The last
/// item is an error where the text is no YAML.
pub(super) fn documents(source: &str) -> Documents<'_> {
    // comments are not needed: no byte outside the scalars is touched
    let options: Options = granit_parser::options! { emit_comments: false };
    Documents { parser: Parser::new_from_str_with_options(source, options), builder: Builder::default() }
}

/// The documents of a stream.
pub(super) struct Documents<'a> {
    parser: Parser<'a, StrInput<'a>>,
    builder: Builder<'a>,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        let builder = &mut self.builder;
        loop {
            let (event, span) = match self.parser.next_event()? {
                Ok(event) => event,
                Err(_) => return Some(Err(NotYaml)),
            };
            match event {
                Event::Scalar(value, style, anchor, tag) => {
                    let span = span.byte_range().unwrap_or_default();
                    let tag = tag.map(|tag| Box::new(tag.into_owned()));
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
                Event::MappingStart(_, anchor, _) => {
                    builder.open.push(Open::Mapping(Vec::new(), None, anchor))
                }
                Event::SequenceEnd | Event::MappingEnd => builder.close(),
                Event::DocumentEnd => return Some(Ok(std::mem::take(&mut builder.document))),
                _ => {}
            }
        }
    }
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

/// What a text reads as, with its changes made, boiled down: it is compared with what the changed text reads
/// as, without holding the one or the other.
#[derive(Default)]
pub(super) struct Trace {
    hasher: DefaultHasher,
    nodes: usize,
    /// Which scalars change, counted from the first: a plain one may become a quoted one.
    changed: BTreeSet<usize>,
}

impl Trace {
    /// Adds a document, the values at the starts of spans in `changed` replaced.
    pub(super) fn add(&mut self, document: &Document<'_>, changed: &BTreeMap<usize, String>) {
        if let Some(root) = &document.root {
            self.node(root, changed);
        }
        self.mark('.', 0);
    }

    fn node(&mut self, node: &Node<'_>, changed: &BTreeMap<usize, String>) {
        match node {
            Node::Scalar(scalar) => match changed.get(&scalar.span.start) {
                Some(value) => {
                    self.changed.insert(self.nodes);
                    self.scalar(value, None, scalar.anchor, scalar.tag.as_deref());
                }
                None => self.scalar(&scalar.value, Some(scalar.style), scalar.anchor, scalar.tag.as_deref()),
            },
            Node::Sequence(items, anchor) => {
                self.mark('[', *anchor);
                items.iter().for_each(|item| self.node(item, changed));
                self.mark(']', 0);
            }
            Node::Mapping(entries, anchor) => {
                self.mark('{', *anchor);
                for (key, value) in entries {
                    self.node(key, changed);
                    self.node(value, changed);
                }
                self.mark('}', 0);
            }
            Node::Alias(id, _) => self.mark('*', *id),
        }
    }

    fn mark(&mut self, sign: char, id: usize) {
        (sign, id).hash(&mut self.hasher);
    }

    fn scalar(&mut self, value: &str, style: Option<ScalarStyle>, anchor: usize, tag: Option<&Tag>) {
        self.nodes += 1;
        self.mark('a', anchor);
        value.hash(&mut self.hasher);
        style.map(|style| style as u8).hash(&mut self.hasher);
        tag.map(|tag| (tag.handle(), tag.suffix())).hash(&mut self.hasher);
    }

    /// Whether `text` reads as what was added.
    pub(super) fn is_of(&self, text: &str) -> bool {
        let mut read = Trace::default();
        let options: Options = granit_parser::options! { emit_comments: false };
        for event in Parser::new_from_str_with_options(text, options) {
            let Ok((event, _)) = event else { return false };
            match event {
                Event::Scalar(value, style, anchor, tag) => {
                    let style = (!self.changed.contains(&read.nodes)).then_some(style);
                    read.scalar(&value, style, anchor, tag.as_deref());
                }
                Event::Alias(id) => read.mark('*', id),
                Event::SequenceStart(_, anchor, _) => read.mark('[', anchor),
                Event::MappingStart(_, anchor, _) => read.mark('{', anchor),
                Event::SequenceEnd => read.mark(']', 0),
                Event::MappingEnd => read.mark('}', 0),
                Event::DocumentEnd => read.mark('.', 0),
                _ => {}
            }
        }
        read.hasher.finish() == self.hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_reads_otherwise_is_told() {
        let source = "a: [b, b]\nc: d\n";
        let reads = |bytes: &str, to: &str| {
            let changed = BTreeMap::from([(4, to.to_owned())]);
            let mut trace = Trace::default();
            documents(source).for_each(|document| trace.add(&document.unwrap(), &changed));
            trace.is_of(&source.replacen("b", bytes, 1))
        };
        assert!(reads("'x:1'", "x:1") && reads("x", "x"));
        for (bytes, to) in [
            ("x, y", "x, y"),
            ("x]\nz: [", "x"),
            ("[x", "[x"),
            ("", ""),
            ("x", "y"),
            ("&b x", "x"),
            ("!t x", "x"),
        ] {
            assert!(!reads(bytes, to), "{bytes}");
        }
    }
}
