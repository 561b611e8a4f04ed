//! The nodes of YAML documents with their places and notations, for edits that keep every other
//! byte.

use super::yaml::is_bounded;
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, options};
use std::ops::Range;

/// A node with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    /// Its bytes; of a list in block notation, from its first item on. A value that is left out has
    /// an empty range behind the colon of its key.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    Alias,
    Mapping { flow: bool, members: Vec<Member> },
    List { flow: bool, items: Vec<Tree> },
}

/// A key of a mapping, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) at: Range<usize>,
    pub(super) value: Tree,
}

impl Tree {
    /// The end of what it holds, without blanks and comments behind it.
    pub(super) fn end(&self) -> usize {
        match &self.kind {
            Kind::Mapping {
                flow: false,
                members,
            } => members
                .last()
                .map_or(self.span.end, |last| last.value.end()),
            Kind::List { flow: false, items } => items.last().map_or(self.span.end, Tree::end),
            _ => self.span.end,
        }
    }
}

/// A collection that is still open, with the key whose value comes next.
struct Open {
    tree: Tree,
    key: Option<(String, Range<usize>)>,
}

/// The root of every document in `text`, in which an alias is a leaf; `None` where it is not YAML,
/// or too large for a tree. An empty document is an empty scalar.
pub(super) fn trees(text: &str) -> Option<Vec<Tree>> {
    if !is_bounded(text) {
        return None;
    }
    let (mut roots, mut open): (Vec<Tree>, Vec<Open>) = (Vec::new(), Vec::new());
    for event in Parser::new_from_str_with_options(text, options! { emit_comments: false }) {
        let (event, span) = event.ok()?;
        let span = span.byte_range()?;
        let begin = |kind| Open {
            tree: Tree {
                span: span.clone(),
                kind,
            },
            key: None,
        };
        let (done, word) = match event {
            Event::SequenceStart(style, ..) => {
                open.push(begin(Kind::List {
                    flow: style == StructureStyle::Flow,
                    items: Vec::new(),
                }));
                continue;
            }
            Event::MappingStart(style, ..) => {
                open.push(begin(Kind::Mapping {
                    flow: style == StructureStyle::Flow,
                    members: Vec::new(),
                }));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let mut tree = open.pop()?.tree;
                tree.span.end = span.end.max(tree.span.start);
                (tree, String::new())
            }
            Event::Scalar(value, ScalarStyle::Literal | ScalarStyle::Folded, ..) => (
                Tree {
                    span: whole_block(text, &span)?,
                    kind: Kind::Scalar,
                },
                value.into_owned(),
            ),
            Event::Scalar(value, ..) => (
                Tree {
                    span,
                    kind: Kind::Scalar,
                },
                value.into_owned(),
            ),
            event if event.is_node() => (
                Tree {
                    span,
                    kind: Kind::Alias,
                },
                String::new(),
            ),
            _ => continue,
        };
        let Some(parent) = open.last_mut() else {
            roots.push(done);
            continue;
        };
        match (&mut parent.tree.kind, parent.key.take()) {
            (Kind::List { items, .. }, _) => items.push(done),
            (Kind::Mapping { .. }, None) => parent.key = Some((word, done.span)),
            (Kind::Mapping { members, .. }, Some((key, at))) => {
                let value = if done.kind == Kind::Scalar && done.span.is_empty() {
                    let colon = at.end + text.get(at.end..)?.find(':')? + 1;
                    Tree {
                        span: colon..colon,
                        ..done
                    }
                } else {
                    done
                };
                members.push(Member { key, at, value });
            }
            _ => return None,
        }
    }
    Some(roots)
}

/// The bytes of a block scalar from its `|` or `>` to the end of its last line. The parser's range
/// begins at its first word, and goes on to what follows it.
fn whole_block(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let before = text
        .get(..span.start)?
        .trim_end_matches(|c: char| c.is_whitespace());
    let line = before.rfind('\n').map_or(0, |newline| newline + 1);
    let head = before[line..].split(" #").next().unwrap_or_default();
    let start = line + head.rfind(['|', '>'])?;
    let end = start + text.get(start..span.end)?.trim_end().len();
    let end = text[end..]
        .find('\n')
        .map_or(text.len(), |newline| end + newline + 1);
    Some(start..end)
}
