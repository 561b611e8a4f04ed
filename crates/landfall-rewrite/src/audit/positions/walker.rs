//! Walks over documents and asks each position what it sees.

use super::claim::Claim;
use super::enclosing::{Enclosing, Members};
use super::position::Position;
use super::reader::Reader;
use crate::audit::candidate::Candidate;
use crate::audit::inventory::Inventory;
use crate::audit::template;
use crate::shapes::is_our_own;
use crate::yaml::{self, Document, Entry, Node, Scalar};

/// What was there before an object was changed; nobody pulls it.
const OUTDATED: &str = "kubectl.kubernetes.io/last-applied-configuration";

type Positions = [&'static dyn Position];

struct Walker<'d, 'f> {
    positions: &'static Positions,
    /// How many more levels of texts within texts are read.
    depth: usize,
    reader: Reader<'d, 'f>,
}

/// Every value of `documents`, whose text is `source`, that names an image, or may, in the order of
/// the text.
pub(super) fn candidates(
    positions: &'static Positions,
    documents: &[Document<'_>],
    source: &str,
    inventory: &Inventory<'_>,
    depth: usize,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for document in documents {
        let Some(root) = document
            .root
            .as_ref()
            .filter(|root| !is_our_own(root) && !is_schema(root))
        else {
            continue;
        };
        let reader = Reader {
            document,
            source,
            inventory,
            path: Vec::new(),
            found: &mut found,
        };
        Walker {
            positions,
            depth,
            reader,
        }
        .node(root, Enclosing::default());
    }
    found
}

/// Whether it is a CustomResourceDefinition: what looks like images there are names of fields.
fn is_schema(root: &Node<'_>) -> bool {
    let Node::Mapping(entries, _) = root else {
        return false;
    };
    yaml::text(entries, "kind") == Some("CustomResourceDefinition")
}

impl<'d> Walker<'d, '_> {
    fn node(&mut self, node: &'d Node<'d>, around: Enclosing<'d>) {
        match node {
            Node::Scalar(scalar) => self.scalar(scalar, around),
            // it was read at its anchor
            Node::Alias(..) => {}
            Node::Sequence(items, _) => self.sequence(items, around),
            Node::Mapping(entries, _) => self.mapping(entries, around),
        }
    }

    fn below(&mut self, key: String, node: &'d Node<'d>, around: Enclosing<'d>) {
        self.reader.path.push(key);
        self.node(node, around);
        self.reader.path.pop();
    }

    fn sequence(&mut self, items: &'d [Node<'d>], around: Enclosing<'d>) {
        let mut previous = None;
        for (at, item) in items.iter().enumerate() {
            let mut below = Enclosing::default();
            self.positions
                .iter()
                .for_each(|position| position.item(around.key, previous, &mut below));
            self.below(format!("[{at}]"), item, below);
            previous = Some(item);
        }
    }

    fn mapping(&mut self, entries: &'d [Entry<'d>], around: Enclosing<'d>) {
        let members = Members { entries, around };
        let mut taken = Vec::new();
        for position in self.positions {
            let more = position.references(&mut self.reader, &members, &taken);
            taken.extend(more);
        }
        taken.sort_unstable();
        for (at, (key, value)) in entries.iter().enumerate() {
            let is_taken = taken.binary_search(&at).is_ok();
            let Some(key) = key.scalar().map(|key| &*key.value).filter(|_| !is_taken) else {
                continue;
            };
            let mut below = Enclosing {
                key: Some(key),
                ..Enclosing::default()
            };
            self.positions
                .iter()
                .for_each(|position| position.entry(&members, value, &mut below));
            self.below(key.to_owned(), value, below);
        }
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, around: Enclosing<'_>) {
        let Some(text) = scalar.text().map(str::trim) else {
            return;
        };
        let flow =
            text.starts_with(['{', '[']) && !text.starts_with("{{") && text.ends_with(['}', ']']);
        if text.contains('\n') || flow {
            return self.text(scalar, around);
        }
        if let Some(Claim {
            written,
            sure,
            in_container,
        }) = self.claim(text, &around)
        {
            // what a position claims is all that follows a flag
            let at = scalar.value.trim_end().len() - written.len();
            self.reader
                .add_inner(scalar, Candidate::all(at, &[], written, sure, in_container));
        }
    }

    /// What a position says of the text of a scalar.
    fn claim<'t>(&self, text: &'t str, around: &Enclosing<'_>) -> Option<Claim<'t>> {
        let inventory = self.reader.inventory;
        self.positions
            .iter()
            .find_map(|position| position.scalar(text, around, inventory))
    }

    /// A text as the value of a scalar: a document in a ConfigMap or an annotation, a list of
    /// images, a template.
    fn text(&mut self, scalar: &Scalar<'_>, around: Enclosing<'_>) {
        if around.key == Some(OUTDATED) || self.depth == 0 {
            return;
        }
        let value = &*scalar.value;
        let is_document = |one: &Document<'_>| !matches!(one.root, None | Some(Node::Scalar(_)));
        let documents = yaml::documents(value).collect::<Result<Vec<_>, _>>();
        let inner = match documents {
            Ok(documents) if documents.iter().all(is_document) => candidates(
                self.positions,
                &documents,
                value,
                self.reader.inventory,
                self.depth - 1,
            ),
            _ => match self
                .claim(value, &around)
                .and_then(|claim| Candidate::of_list(claim.written))
            {
                Some(list) => list,
                None => template::candidates(value),
            },
        };
        self.reader.add_inner(scalar, inner);
    }
}
