//! The nodes of a YAML document.

use granit_parser::{ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One document of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct YamlDocument<'a> {
    /// The node that contains all other nodes; an empty scalar if the document is empty. `None`
    /// only while the document is being read.
    pub root: Option<YamlNode<'a>>,
    /// The texts of anchored scalars, by the anchor's number.
    pub(super) anchored_texts: BTreeMap<usize, String>,
    /// The numbers of the anchors that an alias refers to.
    pub(super) aliased: BTreeSet<usize>,
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
    pub(super) tag: Option<Box<Tag>>,
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

    /// Whether it is a scalar with this text.
    pub fn is_text(&self, text: &str) -> bool {
        self.scalar().is_some_and(|scalar| scalar.value == text)
    }

    /// This node and all nodes below it, keys included, in the order of the text.
    pub fn descendants(&self) -> impl Iterator<Item = &Self> {
        let mut pending = vec![self];
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            match node {
                YamlNode::Sequence(sequence) => pending.extend(sequence.items.iter().rev()),
                YamlNode::Mapping(mapping) => {
                    for entry in mapping.entries.iter().rev() {
                        pending.extend([&entry.value, &entry.key]);
                    }
                }
                YamlNode::Scalar(_) | YamlNode::Alias(_) => {}
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
