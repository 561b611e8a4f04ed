//! The state of the walk over one document: the path that leads to a node, and the candidates so far.

use super::claim::Claim;
use crate::document::LineIndex;
use crate::rewrite::audit::candidate::Candidate;
use crate::rewrite::audit::inventory::Inventory;
use crate::rewrite::audit::location::Location;
use crate::rewrite::yaml::{Document, Node, Scalar};
use granit_parser::ScalarStyle;

/// Collects the candidates of one document.
pub(super) struct Reader<'d, 'f> {
    pub(super) document: &'d Document<'d>,
    pub(super) lines: &'d LineIndex<'d>,
    pub(super) inventory: &'d Inventory<'d>,
    /// The keys that lead to the node.
    pub(super) path: Vec<String>,
    pub(super) found: &'f mut Vec<Candidate>,
}

impl Reader<'_, '_> {
    /// Adds `claim`, unless it is surely not an image.
    pub(super) fn add(&mut self, location: Location, claim: Claim<'_>) {
        let Claim { written, sure, in_container } = claim;
        self.found.extend(Candidate::new(location, self.path.clone(), written, sure, in_container));
    }

    /// The location of the text of `scalar`.
    pub(super) fn location(&self, scalar: &Scalar<'_>) -> Location {
        Location::of(self.lines, text_start(scalar))
    }

    /// The location of `node`; `None` for an empty collection.
    pub(super) fn location_of(&self, node: &Node<'_>) -> Option<Location> {
        start_of(node).map(|at| Location::of(self.lines, at))
    }
}

/// The offset of a scalar's text, after its quote.
fn text_start(scalar: &Scalar<'_>) -> usize {
    let quoted = matches!(scalar.style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    scalar.span.start + usize::from(quoted)
}

/// The offset of a node.
fn start_of(node: &Node<'_>) -> Option<usize> {
    match node {
        Node::Scalar(scalar) => Some(text_start(scalar)),
        Node::Alias(..) => Some(node.start()),
        Node::Sequence(items, _) => items.first().and_then(start_of),
        Node::Mapping(entries, _) => entries.first().and_then(|(key, _)| start_of(key)),
    }
}
