//! The context of a node in its document.

use crate::role::ReferenceRole;
use crate::yaml::{YamlDocument, YamlEntry, position_of, scalar_of, text_of, value_of};
use std::fmt;

/// The keys above a node, and the properties that the rules gave it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NodeContext<'n> {
    /// The key that has the node as its value. `None` for the root, a list item or a key.
    pub(crate) key: Option<&'n str>,
    /// The key as whose value a candidate is read, if it differs from `key`.
    pub(crate) read_as: Option<&'n str>,
    /// The key of the mapping or list that contains the node.
    pub(crate) above: Option<&'n str>,
    /// The role of the node if it is a reference as a whole.
    pub(crate) role: ReferenceRole,
    /// Whether the node is a container of a pod, a workflow or a Compose file.
    pub(crate) container: bool,
    /// Whether the node is a container in the status of a pod.
    pub(crate) status: bool,
    /// Whether the mappings here and below are Secrets, regardless of their `kind`.
    pub(crate) in_secrets: bool,
    /// Whether the values here and below are values of a Secret.
    pub(crate) secret: bool,
    /// Whether the values here and below are encoded, so that a rule must decode them.
    pub(crate) encoded: bool,
    /// The reason why nothing here and below may be changed, if there is one.
    pub(crate) keep: Option<&'static str>,
    /// What is collected here and below.
    pub(crate) collects: Collects,
}

/// What a walk collects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Collects {
    /// References that the index knows, each with its edits.
    pub(crate) occurrences: bool,
    /// Values that name an image, known or not.
    pub(crate) candidates: bool,
}

impl Collects {
    pub(super) fn nothing(self) -> bool {
        self == Collects::default()
    }
}

impl<'n> NodeContext<'n> {
    /// The context of the value of `key` in this node. Without `key`, the context of an item of
    /// this list, or of a key of this mapping.
    pub(super) fn child(self, key: Option<&'n str>) -> NodeContext<'n> {
        NodeContext {
            key,
            read_as: None,
            above: self.key,
            role: ReferenceRole::Value,
            container: false,
            status: false,
            ..self
        }
    }

    /// The key that says what a candidate is.
    pub(crate) fn name(&self) -> Option<&'n str> {
        self.read_as.or(self.key)
    }

    /// Whether a container uses the image that is the value of the node.
    pub(crate) fn is_of_container(&self) -> bool {
        self.container || self.role == ReferenceRole::Container
    }
}

/// The entries of a mapping, and its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MappingContext<'s> {
    pub(crate) entries: &'s [YamlEntry<'s>],
    /// The value of `kind`; empty if there is none.
    pub(crate) kind: &'s str,
    /// The value of `encoding`.
    pub(crate) encoding: Option<&'s str>,
    /// The value of `name`, if candidates are collected.
    pub(crate) name: Option<&'s str>,
    /// Whether the mapping has the key `mirrors`.
    pub(crate) has_mirrors: bool,
    pub(crate) around: NodeContext<'s>,
}

impl<'s> MappingContext<'s> {
    /// The context of a mapping. Keys that the rules need at each entry are looked up here, once:
    /// a mapping may have a million entries.
    pub(super) fn new(
        entries: &'s [YamlEntry<'s>],
        around: NodeContext<'s>,
        document: &'s YamlDocument<'s>,
    ) -> MappingContext<'s> {
        let kind = value_of(entries, "kind").and_then(|kind| document.text(kind));
        let name = around
            .collects
            .candidates
            .then(|| text_of(entries, "name"))
            .flatten();
        MappingContext {
            entries,
            kind: kind.unwrap_or_default(),
            encoding: scalar_of(entries, "encoding"),
            name,
            has_mirrors: position_of(entries, "mirrors").is_some(),
            around,
        }
    }
}

/// A step from a node to one below it. Every node is visited, so the steps become texts only where
/// something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStep<'n> {
    Key(&'n str),
    Item(usize),
}

impl fmt::Display for NodeStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeStep::Key(key) => f.write_str(key),
            NodeStep::Item(at) => write!(f, "[{at}]"),
        }
    }
}
