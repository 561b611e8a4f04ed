//! Walks over documents, and calls each position at every node.

use super::candidate_collector::CandidateCollector;
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::{MappingContents, NodePosition};
use crate::audit::candidate::ImageCandidate;
use crate::audit::inventory::Inventory;
use crate::audit::template;
use crate::shapes::is_our_own;
use crate::yaml::{self, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence};

/// The annotation with a copy of the object as it was last applied. Only the images of the object
/// itself are pulled.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

type PositionTable = [&'static dyn ImagePosition];

struct PositionWalker<'d, 'f> {
    positions: &'static PositionTable,
    /// How many more levels of texts within texts are read.
    depth: usize,
    reader: CandidateCollector<'d, 'f>,
}

/// Finds every value of `document` that names an image, certainly or possibly. `document` is a part
/// of `source`.
pub(super) fn candidates(
    positions: &'static PositionTable,
    document: &YamlDocument<'_>,
    source: &str,
    inventory: &Inventory<'_>,
    depth: usize,
) -> Vec<ImageCandidate> {
    let mut found = Vec::new();
    let root = document
        .root
        .as_ref()
        // landfall's own documents have upstream names on purpose
        .filter(|root| !is_our_own(root) && !is_schema(root));
    let Some(root) = root else {
        return found;
    };
    let reader = CandidateCollector {
        document,
        source,
        inventory,
        path: Vec::new(),
        found: &mut found,
    };
    PositionWalker {
        positions,
        depth,
        reader,
    }
    .node(root, NodePosition::default());
    found
}

/// Whether the document is a CustomResourceDefinition, in which keys like `image` describe fields.
fn is_schema(root: &YamlNode<'_>) -> bool {
    let YamlNode::Mapping(YamlMapping { entries, .. }) = root else {
        return false;
    };
    yaml::text_of(entries, "kind") == Some("CustomResourceDefinition")
}

impl<'d> PositionWalker<'d, '_> {
    fn node(&mut self, node: &'d YamlNode<'d>, around: NodePosition<'d>) {
        match node {
            YamlNode::Scalar(scalar) => self.scalar(scalar, around),
            // the anchored node was read already
            YamlNode::Alias(_) => {}
            YamlNode::Sequence(YamlSequence { items, .. }) => self.sequence(items, around),
            YamlNode::Mapping(YamlMapping { entries, .. }) => self.mapping(entries, around),
        }
    }

    fn visit_child(&mut self, key: String, node: &'d YamlNode<'d>, around: NodePosition<'d>) {
        self.reader.path.push(key);
        self.node(node, around);
        self.reader.path.pop();
    }

    fn sequence(&mut self, items: &'d [YamlNode<'d>], around: NodePosition<'d>) {
        let mut previous = None;
        for (at, item) in items.iter().enumerate() {
            let mut child = NodePosition::default();
            self.positions
                .iter()
                .for_each(|position| position.item(around.key, previous, &mut child));
            self.visit_child(format!("[{at}]"), item, child);
            previous = Some(item);
        }
    }

    fn mapping(&mut self, entries: &'d [YamlEntry<'d>], around: NodePosition<'d>) {
        let members = MappingContents {
            entries,
            name: yaml::text_of(entries, "name"),
            around,
        };
        let mut taken = Vec::new();
        for position in self.positions {
            let more = position.references(&mut self.reader, &members, &taken);
            taken.extend(more);
            // sorted for binary searches: a mapping may have a million entries
            taken.sort_unstable();
        }
        for (at, YamlEntry { key, value }) in entries.iter().enumerate() {
            let is_taken = taken.binary_search(&at).is_ok();
            let Some(key) = key.scalar().map(|key| &*key.value).filter(|_| !is_taken) else {
                continue;
            };
            let mut child = NodePosition {
                key: Some(key),
                ..NodePosition::default()
            };
            self.positions
                .iter()
                .for_each(|position| position.entry(&members, value, &mut child));
            self.visit_child(key.to_owned(), value, child);
        }
    }

    fn scalar(&mut self, scalar: &YamlScalar<'_>, around: NodePosition<'_>) {
        let Some(text) = scalar.text().map(str::trim) else {
            return;
        };
        // `{{ call }}` is a template, not JSON
        let flow =
            text.starts_with(['{', '[']) && !text.starts_with("{{") && text.ends_with(['}', ']']);
        if text.contains('\n') || flow {
            return self.text(scalar, around);
        }
        if let Some(ImageClaim {
            written,
            sure,
            in_container,
        }) = self.claim(text, &around)
        {
            // the claim may be a part of the text: the value of a flag, which is at the end
            let at = scalar.value.trim_end().len() - written.len();
            self.reader.add_inner(
                scalar,
                ImageCandidate::all(at, &[], written, sure, in_container),
            );
        }
    }

    /// The image that the first matching position reads in the text of a scalar.
    fn claim<'t>(&self, text: &'t str, around: &NodePosition<'_>) -> Option<ImageClaim<'t>> {
        let inventory = self.reader.inventory;
        self.positions
            .iter()
            .find_map(|position| position.scalar(text, around, inventory))
    }

    /// Reads a scalar that is a text itself: a document in a ConfigMap or annotation, a list of
    /// images, or a template.
    fn text(&mut self, scalar: &YamlScalar<'_>, around: NodePosition<'_>) {
        if around.key == Some(LAST_APPLIED) || self.depth == 0 {
            return;
        }
        let value = &*scalar.value;
        let is_document =
            |one: &YamlDocument<'_>| !matches!(one.root, None | Some(YamlNode::Scalar(_)));
        let of_documents: Option<Vec<_>> = yaml::documents(value)
            .map(|document| {
                let document = document.ok().filter(is_document)?;
                Some(candidates(
                    self.positions,
                    &document,
                    value,
                    self.reader.inventory,
                    self.depth - 1,
                ))
            })
            .collect();
        let inner = match of_documents {
            Some(candidates) => candidates.into_iter().flatten().collect(),
            None => match self
                .claim(value, &around)
                .and_then(|claim| ImageCandidate::of_list(claim.written))
            {
                Some(list) => list,
                None => template::candidates(value),
            },
        };
        self.reader.add_inner(scalar, inner);
    }
}
