//! The state of the walk over one document: the path that leads to a node, and the candidates so
//! far.

use super::image_claim::ImageClaim;
use crate::audit::candidate::ImageCandidate;
use crate::audit::inventory::Inventory;
use crate::source_map::SourceMap;
use crate::yaml::{ScalarStyle, YamlDocument, YamlMapping, YamlNode, YamlScalar, YamlSequence};

/// Collects the candidates of one document.
pub(super) struct CandidateCollector<'d, 'f> {
    pub(super) document: &'d YamlDocument<'d>,
    /// The text that contains the document.
    pub(super) source: &'d str,
    pub(super) inventory: &'d Inventory<'d>,
    /// The keys that lead to the current node.
    pub(super) path: Vec<String>,
    pub(super) found: &'f mut Vec<ImageCandidate>,
}

impl CandidateCollector<'_, '_> {
    /// Adds the images that `claim` names at the byte `at`.
    pub(super) fn add(&mut self, at: usize, claim: ImageClaim<'_>) {
        let ImageClaim {
            written,
            sure,
            in_container,
        } = claim;
        self.found.extend(ImageCandidate::all(
            at,
            &self.path,
            written,
            sure,
            in_container,
        ));
    }

    /// Adds the candidates `inner`, which were found in the value of `scalar`.
    pub(super) fn add_inner(&mut self, scalar: &YamlScalar<'_>, inner: Vec<ImageCandidate>) {
        let source_map = SourceMap::of(self.source, scalar);
        self.found.extend(inner.into_iter().map(|inner| {
            ImageCandidate {
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

/// The offset of the text of a scalar, after its opening quote.
pub(super) fn text_start(scalar: &YamlScalar<'_>) -> usize {
    let quoted = matches!(
        scalar.style,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted
    );
    scalar.span.start + usize::from(quoted)
}

/// The offset of the first text in a node; `None` for an empty collection.
pub(in crate::audit) fn start_of(node: &YamlNode<'_>) -> Option<usize> {
    match node {
        YamlNode::Scalar(scalar) => Some(text_start(scalar)),
        YamlNode::Alias(alias) => Some(alias.span.start),
        YamlNode::Sequence(YamlSequence { items, .. }) => items.first().and_then(start_of),
        YamlNode::Mapping(YamlMapping { entries, .. }) => {
            entries.first().and_then(|entry| start_of(&entry.key))
        }
    }
}
