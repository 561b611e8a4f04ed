//! The trait that each rule about the references of documents implements.

use super::collector::{ImageClaim, ReferenceCollector};
use super::scanner::ReferenceScanner;
use crate::inventory::Inventory;
use crate::occurrence::ReferenceRole;
use crate::scan_result::ScanResult;
use crate::yaml::{YamlDocument, YamlEntry, YamlNode, position_of, scalar_of, text_of, value_of};
use std::fmt;

/// A rule about the references of documents: a shape in which they are written, a position at which
/// images are named, or values that are left alone. Each rule is one file in `rules/` and one row
/// of the table in that folder. The walk calls every method where it applies; a rule implements
/// those that it needs.
pub(crate) trait ReferenceRule: Sync {
    /// What is not collected in the document with this root.
    fn skips(&self, _root: &YamlNode<'_>) -> Collects {
        Collects::default()
    }

    /// Whether a mapping is a Secret.
    fn is_secret(&self, _members: &MappingContext<'_>) -> bool {
        false
    }

    /// The reason why nothing in a mapping may be changed, if there is one.
    fn keeps(&self, _members: &MappingContext<'_>) -> Option<&'static str> {
        None
    }

    /// Collects the known references whose meaning depends on several entries of a mapping: split
    /// references and prefixes. Returns the indexes of the entries that are references or parts of
    /// them, so that their values are not read again. `taken` are the indexes that earlier rules
    /// returned, sorted.
    fn references<'s>(
        &self,
        _collector: &mut ReferenceCollector<'_, 's>,
        _members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Like `references`, for candidates: the images whose parts are several entries of a mapping,
    /// whether the lock contains them or not.
    fn candidates<'s>(
        &self,
        _collector: &mut ReferenceCollector<'_, 's>,
        _inventory: &Inventory<'_>,
        _members: &MappingContext<'s>,
        _taken: &[usize],
    ) -> Vec<usize> {
        Vec::new()
    }

    /// Sets properties in `child`, the context of `value`. The key of `value` in `members` is
    /// `child.key`.
    fn entry<'s>(
        &self,
        _members: &MappingContext<'s>,
        _value: &'s YamlNode<'s>,
        _child: &mut NodeContext<'s>,
    ) {
    }

    /// Sets in `child` the properties of an item of `list`, after the item `previous`.
    fn item<'s>(
        &self,
        _list: &NodeContext<'s>,
        _previous: Option<&'s YamlNode<'s>>,
        _child: &mut NodeContext<'s>,
    ) {
    }

    /// The candidate that the text of a scalar is.
    fn claim<'t>(
        &self,
        _text: &'t str,
        _around: &NodeContext<'_>,
        _inventory: &Inventory<'_>,
    ) -> Option<ImageClaim<'t>> {
        None
    }

    /// Decodes and scans `value`. `depth` is the number of texts in which the document is nested,
    /// and `encoded` says whether the document declares the value as encoded. `None` if this rule
    /// cannot decode it.
    fn decode(
        &self,
        _scanner: &ReferenceScanner<'_>,
        _value: &str,
        _encoded: bool,
        _depth: usize,
    ) -> Option<ScanResult> {
        None
    }
}

// The context of a node in its document.

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
