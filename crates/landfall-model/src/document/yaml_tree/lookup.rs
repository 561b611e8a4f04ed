//! Finds the node that a message is about.

use super::documents::YamlDocuments;
use super::node::{YamlEntry, YamlNode};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl<'a> YamlNode<'a> {
    /// The value of `key` in a mapping. This node itself if there is none, so that a message about
    /// a missing value points at its parent.
    pub fn get(&self, key: &str) -> &Self {
        self.entry(key).map_or(self, |entry| &entry.value)
    }

    /// The item of a list, or the value of an entry of a mapping, with the number `index`, counted
    /// from 0. This node itself if there is none.
    pub fn item(&self, index: usize) -> &Self {
        let item = match self {
            YamlNode::Sequence(sequence) => sequence.items.get(index),
            YamlNode::Mapping(mapping) => mapping.entries.get(index).map(|entry| &entry.value),
            YamlNode::Scalar(_) | YamlNode::Alias(_) => None,
        };
        item.unwrap_or(self)
    }

    /// The number of items of a list or entries of a mapping.
    pub fn count(&self) -> usize {
        match self {
            YamlNode::Sequence(sequence) => sequence.items.len(),
            YamlNode::Mapping(mapping) => mapping.entries.len(),
            YamlNode::Scalar(_) | YamlNode::Alias(_) => 0,
        }
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
    pub(in crate::document) fn repeated_key(&self) -> Option<(&str, Range<usize>)> {
        let repetitions = self.descendants().filter_map(|node| {
            let YamlNode::Mapping(mapping) = node else {
                return None;
            };
            let mut seen = BTreeSet::new();
            let mut keys = mapping
                .entries
                .iter()
                .filter_map(|entry| entry.key.scalar());
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
