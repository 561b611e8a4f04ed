//! The state of the walk over one document: the path that leads to a node, and the candidates so
//! far.

use super::claim::Claim;
use crate::audit::candidate::Candidate;
use crate::audit::inventory::Inventory;
use crate::source_map::SourceMap;
use crate::yaml::{Document, Node, Scalar};
use granit_parser::ScalarStyle;

/// Collects the candidates of one document.
pub(super) struct Reader<'d, 'f> {
    pub(super) document: &'d Document<'d>,
    /// The text of the document.
    pub(super) source: &'d str,
    pub(super) inventory: &'d Inventory<'d>,
    /// The keys that lead to the node.
    pub(super) path: Vec<String>,
    pub(super) found: &'f mut Vec<Candidate>,
}

impl Reader<'_, '_> {
    /// Adds what `claim`, which stands at the byte `at`, names, unless it is surely not an image.
    pub(super) fn add(&mut self, at: usize, claim: Claim<'_>) {
        let Claim {
            written,
            sure,
            in_container,
        } = claim;
        self.found
            .extend(Candidate::all(at, &self.path, written, sure, in_container));
    }

    /// Adds `inner`, found in the value of `scalar`.
    pub(super) fn add_inner(&mut self, scalar: &Scalar<'_>, inner: Vec<Candidate>) {
        let source_map = SourceMap::of(self.source, scalar);
        self.found.extend(inner.into_iter().map(|inner| {
            Candidate {
                at: source_map
                    .as_ref()
                    .and_then(|source_map| source_map.offset(inner.at))
                    .unwrap_or_else(|| text_start(scalar)),
                path: [&self.path[..], &inner.path].concat(),
                ..inner
            }
        }));
    }
}

/// The offset of a scalar's text, after its quote.
pub(super) fn text_start(scalar: &Scalar<'_>) -> usize {
    let quoted = matches!(
        scalar.style,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted
    );
    scalar.span.start + usize::from(quoted)
}

/// The offset of a node; `None` for an empty collection.
pub(super) fn start_of(node: &Node<'_>) -> Option<usize> {
    match node {
        Node::Scalar(scalar) => Some(text_start(scalar)),
        Node::Alias(..) => Some(node.start()),
        Node::Sequence(items, _) => items.first().and_then(start_of),
        Node::Mapping(entries, _) => entries.first().and_then(|(key, _)| start_of(key)),
    }
}
