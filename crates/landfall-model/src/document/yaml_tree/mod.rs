//! YAML documents as trees whose nodes know their bytes in the text.
//!
//! Values are read by `yaml`, which has no positions. All code that needs positions uses this
//! tree: messages that point at a value, merges and rewrites that keep every other byte, and
//! audits.
//!
//! This file has the nodes, the bytes to replace when a value gets a new text, and the node that a
//! message is about; `documents.rs` reads the documents of a stream from the parser's events.

mod documents;

use granit_parser::Tag;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) use self::documents::document_roots;
pub use self::documents::{NotYaml, YamlDocuments, comment_spans};
pub use granit_parser::ScalarStyle;

/// One document of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct YamlDocument<'a> {
    /// The node that contains all other nodes; an empty scalar if the document is empty. `None`
    /// only while the document is being read.
    pub root: Option<YamlNode<'a>>,
    /// The texts of anchored scalars, by the anchor's number.
    anchored_texts: BTreeMap<usize, String>,
    /// The numbers of the anchors that an alias refers to.
    aliased: BTreeSet<usize>,
}

/// A node of a document.
///
/// The parser limits how deep nodes nest, so that code may recurse over them.
#[derive(Debug, Clone, PartialEq)]
pub enum YamlNode<'a> {
    /// A single value, such as a text or a number.
    Scalar(YamlScalar<'a>),
    /// A list, in block notation or brackets.
    Sequence(YamlSequence<'a>),
    /// A mapping of keys to values, in block notation or braces.
    Mapping(YamlMapping<'a>),
    /// `*name`, which repeats the node with the anchor `&name`.
    Alias(YamlAlias),
}

/// A single value, such as a text or a number.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlScalar<'a> {
    /// The parsed text, before plain scalars are resolved to numbers, booleans and null. `~` if
    /// nothing is written.
    pub value: Cow<'a, str>,
    /// Whether it is written plain, quoted or as a block.
    pub style: ScalarStyle,
    /// Its bytes in the text, quotes included. For a block scalar, the bytes of its lines without
    /// the header; for a value that is left out, an empty range.
    pub span: Range<usize>,
    /// The number of its anchor, 0 for none.
    pub anchor: usize,
    tag: Option<Box<Tag>>,
}

/// A list, in block notation or brackets.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlSequence<'a> {
    /// The items in the order of the text.
    pub items: Vec<YamlNode<'a>>,
    /// Its bytes in the text, brackets included. In block notation, from its first dash on or, if
    /// the dashes are in the column of its key, from the first item on.
    pub span: Range<usize>,
    /// Whether it is written in brackets.
    pub flow: bool,
    /// The number of its anchor, 0 for none.
    pub anchor: usize,
}

/// Keys and their values, in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlMapping<'a> {
    /// Its entries. The text may repeat a key.
    pub entries: Vec<YamlEntry<'a>>,
    /// Its bytes in the text, braces included. In block notation, from its first key on.
    pub span: Range<usize>,
    /// Whether it is written in braces.
    pub flow: bool,
    /// The number of its anchor, 0 for none.
    pub anchor: usize,
}

/// A key of a mapping and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlEntry<'a> {
    /// The key, which may be any node.
    pub key: YamlNode<'a>,
    /// The value of the key; an empty scalar if it is left out.
    pub value: YamlNode<'a>,
}

/// A reference to an anchored node.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlAlias {
    /// The number of the anchor.
    pub anchor: usize,
    /// Its bytes in the text, asterisk included.
    pub span: Range<usize>,
}

impl<'a> YamlScalar<'a> {
    /// A scalar without tag and anchor.
    pub fn new(value: Cow<'a, str>, style: ScalarStyle, span: Range<usize>) -> YamlScalar<'a> {
        YamlScalar {
            value,
            style,
            span,
            anchor: 0,
            tag: None,
        }
    }

    /// The value, unless it is empty or null.
    pub fn text(&self) -> Option<&str> {
        let is_null = self.style == ScalarStyle::Plain
            && matches!(self.value.as_ref(), "~" | "null" | "Null" | "NULL");
        (!is_null && !self.value.is_empty()).then_some(&*self.value)
    }

    /// The handle and suffix of its tag, such as `!!` and `str`.
    pub fn tag(&self) -> Option<(&str, &str)> {
        self.tag.as_ref().map(|tag| (tag.handle(), tag.suffix()))
    }

    /// Whether its tag says that it is base64.
    pub fn is_binary(&self) -> bool {
        let name = self
            .tag
            .as_ref()
            .and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
        name.as_deref() == Some("binary")
    }

    /// Whether it is a block scalar, introduced by `|` or `>`.
    pub fn is_block(&self) -> bool {
        matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded)
    }
}

impl<'a> YamlNode<'a> {
    /// Its bytes in the text.
    pub fn span(&self) -> Range<usize> {
        match self {
            YamlNode::Scalar(scalar) => scalar.span.clone(),
            YamlNode::Sequence(sequence) => sequence.span.clone(),
            YamlNode::Mapping(mapping) => mapping.span.clone(),
            YamlNode::Alias(alias) => alias.span.clone(),
        }
    }

    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<&YamlScalar<'a>> {
        match self {
            YamlNode::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The entries of a mapping; empty for any other node.
    pub fn entries(&self) -> &[YamlEntry<'a>] {
        match self {
            YamlNode::Mapping(mapping) => &mapping.entries,
            _ => &[],
        }
    }

    /// The items of a list; empty for any other node.
    pub fn items(&self) -> &[YamlNode<'a>] {
        match self {
            YamlNode::Sequence(sequence) => &sequence.items,
            _ => &[],
        }
    }

    /// Whether it is a scalar with this text.
    pub fn is_text(&self, text: &str) -> bool {
        self.scalar().is_some_and(|scalar| scalar.value == text)
    }

    /// This node and all nodes below it, keys included, in the order of the text.
    pub fn descendants(&self) -> impl Iterator<Item = &Self> {
        let mut pending = vec![self];
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            pending.extend(node.items().iter().rev());
            for entry in node.entries().iter().rev() {
                pending.extend([&entry.value, &entry.key]);
            }
            Some(node)
        })
    }

    /// The same tree without references to the text.
    pub fn into_owned(self) -> YamlNode<'static> {
        match self {
            YamlNode::Scalar(scalar) => YamlNode::Scalar(YamlScalar {
                value: Cow::Owned(scalar.value.into_owned()),
                ..scalar
            }),
            YamlNode::Sequence(sequence) => YamlNode::Sequence(YamlSequence {
                items: sequence
                    .items
                    .into_iter()
                    .map(YamlNode::into_owned)
                    .collect(),
                ..sequence
            }),
            YamlNode::Mapping(mapping) => YamlNode::Mapping(YamlMapping {
                entries: mapping
                    .entries
                    .into_iter()
                    .map(YamlEntry::into_owned)
                    .collect(),
                ..mapping
            }),
            YamlNode::Alias(alias) => YamlNode::Alias(alias),
        }
    }
}

impl Default for YamlNode<'_> {
    /// An empty scalar at the beginning of the text.
    fn default() -> Self {
        let value = Cow::Borrowed("");
        YamlNode::Scalar(YamlScalar::new(value, ScalarStyle::Plain, 0..0))
    }
}

impl YamlEntry<'_> {
    fn into_owned(self) -> YamlEntry<'static> {
        YamlEntry {
            key: self.key.into_owned(),
            value: self.value.into_owned(),
        }
    }
}

impl<'a> YamlMapping<'a> {
    /// The first entry whose key is the text `key`.
    pub fn entry(&self, key: &str) -> Option<&YamlEntry<'a>> {
        self.entries.iter().find(|entry| entry.key.is_text(key))
    }
}

impl<'a> YamlDocument<'a> {
    /// A document without anchors and aliases.
    pub fn new(root: YamlNode<'a>) -> YamlDocument<'a> {
        YamlDocument {
            root: Some(root),
            ..YamlDocument::default()
        }
    }

    /// The text of a scalar, or of the scalar that an alias repeats, unless it is empty or null.
    pub fn text<'n>(&'n self, node: &'n YamlNode<'_>) -> Option<&'n str> {
        match node {
            YamlNode::Scalar(scalar) => scalar.text(),
            YamlNode::Alias(alias) => self.anchored_texts.get(&alias.anchor).map(String::as_str),
            YamlNode::Sequence(_) | YamlNode::Mapping(_) => None,
        }
    }

    /// The entries of its root; empty if the root is not a mapping.
    pub fn entries(&self) -> &[YamlEntry<'a>] {
        self.root
            .as_ref()
            .map(YamlNode::entries)
            .unwrap_or_default()
    }

    /// Whether its root is a mapping or a list.
    pub fn is_structured(&self) -> bool {
        matches!(
            self.root,
            Some(YamlNode::Mapping(_) | YamlNode::Sequence(_))
        )
    }

    /// Whether an alias repeats `scalar`, so that a change of the scalar changes the alias too.
    pub fn is_shared(&self, scalar: &YamlScalar<'_>) -> bool {
        self.aliased.contains(&scalar.anchor)
    }
}

// The bytes to replace when a value gets a new text. For some values, they differ from the span in
// the tree.

impl YamlNode<'_> {
    /// The bytes of this node in `text`. For a block scalar they begin with its header, unlike
    /// [`YamlNode::span`].
    pub(super) fn extent(&self, text: &str) -> Range<usize> {
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
    pub(super) fn value_extent(&self, text: &str) -> Range<usize> {
        let extent = self.value.extent(text);
        let is_left_out = self.value.scalar().is_some() && extent.is_empty();
        let key_end = self.key.span().end;
        match text.get(key_end..).and_then(|rest| rest.find(':')) {
            Some(colon) if is_left_out => key_end + colon + 1..key_end + colon + 1,
            _ => extent,
        }
    }

    /// The end of the content of the value in `text`.
    pub(super) fn content_end(&self, text: &str) -> usize {
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

impl<'a> YamlNode<'a> {
    /// The value of `key` in a mapping. This node itself if there is none, so that a message about
    /// a missing value points at its parent.
    pub fn get(&self, key: &str) -> &Self {
        self.entry(key).map_or(self, |entry| &entry.value)
    }

    /// The item of a list, or the value of an entry of a mapping, with the number `index`, counted
    /// from 0. This node itself if there is none.
    pub fn item(&self, index: usize) -> &Self {
        let value = self.entries().get(index).map(|entry| &entry.value);
        self.items().get(index).or(value).unwrap_or(self)
    }

    /// The number of items of a list or entries of a mapping.
    pub fn count(&self) -> usize {
        self.items().len() + self.entries().len()
    }

    /// The bytes of the key `key` itself.
    pub fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.entry(key).map(|entry| entry.key.span())
    }

    /// The bytes of the key, scalar, alias or empty collection that begins at the byte `start`. If
    /// a block mapping begins there, the bytes of its first key.
    pub fn starting_at(&self, start: usize) -> Option<Range<usize>> {
        self.descendants()
            .filter(|node| node.count() == 0)
            .map(YamlNode::span)
            .find(|span| span.start == start)
    }

    /// The first key that a mapping repeats, with the bytes of the repetition.
    pub(super) fn repeated_key(&self) -> Option<(&str, Range<usize>)> {
        let repetitions = self.descendants().filter_map(|node| {
            let mut seen = BTreeSet::new();
            let mut keys = node.entries().iter().filter_map(|entry| entry.key.scalar());
            keys.find(|key| !seen.insert(&*key.value))
        });
        repetitions
            .min_by_key(|key| key.span.start)
            .map(|key| (&*key.value, key.span.clone()))
    }

    fn entry(&self, key: &str) -> Option<&YamlEntry<'a>> {
        match self {
            YamlNode::Mapping(mapping) => mapping.entry(key),
            _ => None,
        }
    }
}

/// The bytes of the scalar to which the alias at the bytes `alias` refers. `None` if there is no
/// alias at these bytes, or if it refers to a collection.
pub fn anchored_scalar(text: &str, alias: &Range<usize>) -> Option<Range<usize>> {
    let mut scalars = BTreeMap::new();
    for document in YamlDocuments::new(text, 0..text.len()) {
        let Some(root) = document.ok()?.root else {
            continue;
        };
        for node in root.descendants() {
            match node {
                YamlNode::Scalar(scalar) => {
                    scalars.insert(scalar.anchor, scalar.span.clone());
                }
                YamlNode::Alias(found) if found.span == *alias => {
                    return scalars.remove(&found.anchor);
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\u{feff}# é\r\nvars: {arch: [amd64, \"arm64\"]} # x\r\nimages:\r\n- a:1\r\n- ref: &r b:2\r\n  also: *r\r\n  note: |\r\n    c\r\n";

    fn cut(node: &YamlNode<'_>) -> &'static str {
        &TEXT[node.span()]
    }

    #[test]
    fn every_value_has_its_own_position() {
        let root = YamlNode::parse(TEXT).unwrap();
        assert_eq!(cut(root.get("vars").get("arch").item(1)), "\"arm64\"");
        assert_eq!(cut(root.get("images").item(0)), "a:1");
        assert!(cut(root.get("images").item(1).get("ref")).ends_with("b:2"));
        assert_eq!(cut(root.get("images").item(1).get("also")), "*r");
        assert_eq!(&TEXT[root.get("vars").key_span("arch").unwrap()], "arch");
    }

    #[test]
    fn an_alias_leads_to_its_scalar() {
        let text = &TEXT["\u{feff}".len()..];
        let root = YamlNode::parse(text).unwrap();
        let image = root.get("images").item(1);
        let anchored = anchored_scalar(text, &image.get("also").span()).unwrap();
        assert!(text[anchored].ends_with("b:2"));
        assert_eq!(anchored_scalar(text, &image.get("ref").span()), None);
        let list = "a: &a [1]\nb: *a\n";
        assert_eq!(
            anchored_scalar(list, &YamlNode::parse(list).unwrap().get("b").span()),
            None
        );
    }

    #[test]
    fn a_missing_value_has_the_position_of_its_parent() {
        let root = YamlNode::parse(TEXT).unwrap();
        let image = root.get("images").item(1);
        assert_eq!(image.get("digest"), image);
        assert_eq!(root.get("images").item(7), root.get("images"));
        assert_eq!(image.key_span("digest"), None);
    }

    #[test]
    fn a_node_is_found_by_its_first_byte() {
        let root = YamlNode::parse(TEXT).unwrap();
        let at = |word: &str| {
            root.starting_at(TEXT.find(word).unwrap())
                .map(|span| &TEXT[span])
        };
        assert_eq!(at("images"), Some("images"));
        assert_eq!(at("ref:"), Some("ref"));
        assert_eq!(at("a:1"), Some("a:1"));
        assert_eq!(root.starting_at(TEXT.len()), None);
    }

    #[test]
    fn invalid_yaml_and_missing_documents_return_none() {
        assert_eq!(YamlNode::parse("a: [1"), None);
        assert_eq!(YamlNode::parse("# nothing\n"), None);
    }
}
