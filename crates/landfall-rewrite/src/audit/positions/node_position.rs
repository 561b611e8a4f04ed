//! The context of a node in its document.

use crate::yaml::YamlEntry;

/// The context of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodePosition<'n> {
    /// The key of the node, or another key if the node is read like the value of that key.
    pub(super) key: Option<&'n str>,
    /// Whether the node is a container, or the image of one.
    pub(super) container: bool,
    /// Whether the node is a container in the status of a pod.
    pub(super) status: bool,
}

/// The entries of a mapping, and its context.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappingContents<'n> {
    pub(super) entries: &'n [YamlEntry<'n>],
    /// The value of `name`. Looked up once, because each entry may need it.
    pub(super) name: Option<&'n str>,
    pub(super) around: NodePosition<'n>,
}
