//! What encloses a node of a document.

use crate::yaml::Entry;

/// What encloses a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Enclosing<'n> {
    /// The key of the mapping entry whose value it is, or the key that it counts as.
    pub(super) key: Option<&'n str>,
    /// Whether it is a container, or the image of one.
    pub(super) container: bool,
    /// Whether it is a container in the status of a pod.
    pub(super) status: bool,
}

/// The members of a mapping, and what encloses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members<'n> {
    pub(super) entries: &'n [Entry<'n>],
    pub(super) around: Enclosing<'n>,
}
