//! What a text reads as, boiled down to a sum, to prove that a changed text reads as it is
//! replacement to.

use super::granit::Granit;
use super::node::{Document, Node, Scalar};
use granit_parser::ScalarStyle;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a text reads as, with its changes made, boiled down: it is compared with what the changed
/// text reads as, without holding the one or the other.
#[derive(Default)]
pub(crate) struct ParseFingerprint {
    hasher: DefaultHasher,
    nodes: usize,
    /// Which scalars change, counted from the first: a plain one may become a quoted one.
    changed: BTreeSet<usize>,
}

impl ParseFingerprint {
    /// Adds a document, the values at the starts of spans in `changed` replaced.
    pub(crate) fn add(&mut self, document: &Document<'_>, changed: &BTreeMap<usize, String>) {
        if let Some(root) = &document.root {
            self.node(root, changed);
        }
        self.mark('.', 0);
    }

    fn node(&mut self, node: &Node<'_>, changed: &BTreeMap<usize, String>) {
        match node {
            Node::Scalar(scalar) => {
                let new = changed.get(&scalar.span.start);
                if new.is_some() {
                    self.changed.insert(self.nodes);
                }
                self.scalar(scalar, new.map_or(&*scalar.value, String::as_str));
            }
            Node::Sequence(items, anchor) => {
                self.mark('[', *anchor);
                items.iter().for_each(|item| self.node(item, changed));
                self.mark(']', 0);
            }
            Node::Mapping(entries, anchor) => {
                self.mark('{', *anchor);
                for (key, value) in entries {
                    self.node(key, changed);
                    self.node(value, changed);
                }
                self.mark('}', 0);
            }
            Node::Alias(id, _) => self.mark('*', *id),
        }
    }

    fn mark(&mut self, sign: char, id: usize) {
        (sign, id).hash(&mut self.hasher);
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, value: &str) {
        let style: Option<ScalarStyle> =
            (!self.changed.contains(&self.nodes)).then_some(scalar.style);
        self.nodes += 1;
        self.mark('a', scalar.anchor);
        value.hash(&mut self.hasher);
        style.map(|style| style as u8).hash(&mut self.hasher);
        scalar
            .tag
            .as_ref()
            .map(|tag| (tag.handle(), tag.suffix()))
            .hash(&mut self.hasher);
    }

    /// Whether `text` up to `end` reads as what was added. Behind that may stand the marker of a
    /// further document. It is read by the parser for all of YAML, whatever read the documents that
    /// were added.
    pub(crate) fn is_of(&self, text: &str, end: usize) -> bool {
        let mut read = ParseFingerprint {
            changed: self.changed.clone(),
            ..ParseFingerprint::default()
        };
        for document in Granit::new(text, 0..end) {
            let Ok(document) = document else { return false };
            read.add(&document, &BTreeMap::new());
        }
        read.hasher.finish() == self.hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents::documents;
    use super::*;

    #[test]
    fn a_text_that_reads_otherwise_is_told() {
        let source = "a: [b, b]\nc: d\n";
        let reads = |bytes: &str, to: &str| {
            let changed = BTreeMap::from([(4, to.to_owned())]);
            let mut fingerprint = ParseFingerprint::default();
            documents(source).for_each(|document| fingerprint.add(&document.unwrap(), &changed));
            {
                let new = source.replacen('b', bytes, 1);
                fingerprint.is_of(&new, new.len())
            }
        };
        assert!(reads("'x:1'", "x:1") && reads("x", "x"));
        for (bytes, to) in [
            ("x, y", "x, y"),
            ("x]\nz: [", "x"),
            ("[x", "[x"),
            ("", ""),
            ("x", "y"),
            ("&b x", "x"),
            ("!t x", "x"),
        ] {
            assert!(!reads(bytes, to), "{bytes}");
        }
    }
}
