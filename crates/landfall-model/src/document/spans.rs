//! The place of each value in a YAML document, so that a message can point at it.

use super::yaml::is_bounded;
use granit_parser::{Event, Parser, options};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A node of a document: its byte range, and the nodes below it.
///
/// Look-ups never fail: an absent value has the place of its parent. An alias has its own place,
/// not that of its anchor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    span: Range<usize>,
    below: Vec<Member>,
}

/// A value in a mapping or list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    key: Option<(String, Range<usize>)>,
    value: Node,
}

/// A collection that is still open, with the key whose value comes next.
struct Open {
    node: Node,
    is_mapping: bool,
    key: Option<(String, Range<usize>)>,
}

impl Node {
    /// The root of the first document in `text`; `None` where it is empty, not YAML or too large
    /// for a tree.
    pub fn parse(text: &str) -> Option<Node> {
        if !is_bounded(text) {
            return None;
        }
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str_with_options(text, options! { emit_comments: false }) {
            let (event, span) = event.ok()?;
            let span = span.byte_range()?;
            let done = match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    let is_mapping = matches!(event, Event::MappingStart(..));
                    open.push(Open {
                        node: Node {
                            span,
                            below: Vec::new(),
                        },
                        is_mapping,
                        key: None,
                    });
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let mut node = open.pop()?.node;
                    node.span.end = span.end.max(node.span.start);
                    (node, String::new())
                }
                Event::Scalar(value, ..) => (
                    Node {
                        span,
                        below: Vec::new(),
                    },
                    value.into_owned(),
                ),
                event if event.is_node() => (
                    Node {
                        span,
                        below: Vec::new(),
                    },
                    String::new(),
                ),
                _ => continue,
            };
            let (node, value) = done;
            match open.last_mut() {
                None => return Some(node),
                Some(parent) if parent.is_mapping && parent.key.is_none() => {
                    parent.key = Some((value, node.span));
                }
                Some(parent) => {
                    let key = parent.key.take();
                    parent.node.below.push(Member { key, value: node });
                }
            }
        }
        None
    }

    /// The byte range of the scalar whose anchor the alias at `alias` names; `None` where there is
    /// no alias, or it stands for more than a scalar.
    pub fn anchored(text: &str, alias: &Range<usize>) -> Option<Range<usize>> {
        let mut scalars = BTreeMap::new();
        for event in Parser::new_from_str_with_options(text, options! { emit_comments: false }) {
            let (event, span) = event.ok()?;
            match event {
                Event::Scalar(_, _, anchor, _) => drop(scalars.insert(anchor, span.byte_range()?)),
                Event::Alias(anchor) if span.byte_range()? == *alias => {
                    return scalars.get(&anchor).cloned();
                }
                _ => {}
            }
        }
        None
    }

    /// Its byte range in the text.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> &Node {
        self.member(key).map_or(self, |member| &member.value)
    }

    /// The number of values of a mapping or list.
    pub fn count(&self) -> usize {
        self.below.len()
    }

    /// The byte range of the key `key` itself, where it exists.
    pub fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.member(key)
            .and_then(|member| member.key.as_ref())
            .map(|(_, span)| span.clone())
    }

    /// The `index`th value of a list, counted from 0.
    pub fn item(&self, index: usize) -> &Node {
        self.below.get(index).map_or(self, |member| &member.value)
    }

    /// The byte range of the key, scalar or collection that begins at the byte `start`; for
    /// a mapping, that of its first key.
    pub fn starting_at(&self, start: usize) -> Option<Range<usize>> {
        let mut nodes = vec![self];
        while let Some(node) = nodes.pop() {
            if node.span.start == start && node.below.is_empty() {
                return Some(node.span());
            }
            let keys = node.below.iter().filter_map(|member| member.key.as_ref());
            if let Some((_, span)) = keys.into_iter().find(|(_, span)| span.start == start) {
                return Some(span.clone());
            }
            nodes.extend(node.below.iter().map(|member| &member.value));
        }
        None
    }

    /// The first key that a mapping has twice, with the place of the second.
    pub(super) fn repeated_key(&self) -> Option<(String, Range<usize>)> {
        let mut nodes = vec![self];
        let mut found: Option<(String, Range<usize>)> = None;
        while let Some(node) = nodes.pop() {
            let mut seen = BTreeSet::new();
            for (key, span) in node.below.iter().filter_map(|member| member.key.as_ref()) {
                let earlier = found
                    .as_ref()
                    .is_none_or(|(_, first)| span.start < first.start);
                if !seen.insert(key) && earlier {
                    found = Some((key.clone(), span.clone()));
                }
            }
            nodes.extend(node.below.iter().map(|member| &member.value));
        }
        found
    }

    fn member(&self, key: &str) -> Option<&Member> {
        self.below
            .iter()
            .find(|member| member.key.as_ref().is_some_and(|(name, _)| name == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\u{feff}# é\r\nvars: {arch: [amd64, \"arm64\"]} # x\r\nimages:\r\n- a:1\r\n- ref: &r b:2\r\n  also: *r\r\n  note: |\r\n    c\r\n";

    fn cut(node: &Node) -> &'static str {
        &TEXT[node.span()]
    }

    #[test]
    fn every_value_has_its_own_place() {
        let root = Node::parse(TEXT).unwrap();
        assert_eq!(cut(root.get("vars").get("arch").item(1)), "\"arm64\"");
        assert_eq!(cut(root.get("images").item(0)), "a:1");
        assert!(cut(root.get("images").item(1).get("ref")).ends_with("b:2"));
        assert_eq!(cut(root.get("images").item(1).get("also")), "*r");
        assert_eq!(&TEXT[root.get("vars").key_span("arch").unwrap()], "arch");
    }

    #[test]
    fn an_alias_leads_to_its_scalar() {
        let text = &TEXT["\u{feff}".len()..];
        let root = Node::parse(text).unwrap();
        let image = root.get("images").item(1);
        let anchored = Node::anchored(text, &image.get("also").span()).unwrap();
        assert!(text[anchored].ends_with("b:2"));
        assert_eq!(Node::anchored(text, &image.get("ref").span()), None);
        let list = "a: &a [1]\nb: *a\n";
        assert_eq!(
            Node::anchored(list, &Node::parse(list).unwrap().get("b").span()),
            None
        );
    }

    #[test]
    fn what_is_not_there_has_the_place_of_its_parent() {
        let root = Node::parse(TEXT).unwrap();
        let image = root.get("images").item(1);
        assert_eq!(image.get("digest"), image);
        assert_eq!(root.get("images").item(7), root.get("images"));
        assert_eq!(image.key_span("digest"), None);
    }

    #[test]
    fn a_place_is_found_by_its_first_byte() {
        let root = Node::parse(TEXT).unwrap();
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
    fn no_yaml_and_no_document_are_none() {
        assert_eq!(Node::parse("a: [1"), None);
        assert_eq!(Node::parse("# nothing\n"), None);
    }
}
