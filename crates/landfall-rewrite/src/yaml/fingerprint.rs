//! Fingerprints of parsed texts, which prove that a rewritten text has exactly the intended values.

use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlDocuments, YamlNode, YamlScalar, yaml,
};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash over all nodes of a text, with the intended changes applied. It is compared with that of
/// the rewritten text, so that neither tree has to be held in memory.
#[derive(Default)]
pub(crate) struct ParseFingerprint {
    hasher: DefaultHasher,
    /// The number of scalars so far.
    scalars: usize,
    /// The numbers of the scalars that change, counted from the first. Their style is not hashed,
    /// because a plain one may become a quoted one.
    changed: BTreeSet<usize>,
}

impl ParseFingerprint {
    /// Adds a document. `changed` has the new values of the scalars that change, by the offset of
    /// the scalar's first byte.
    pub(crate) fn add(&mut self, document: &YamlDocument<'_>, changed: &BTreeMap<usize, String>) {
        if let Some(root) = &document.root {
            self.add_node(root, changed);
        }
        self.add_sign('.', 0);
    }

    fn add_node(&mut self, node: &YamlNode<'_>, changed: &BTreeMap<usize, String>) {
        match node {
            YamlNode::Scalar(scalar) => {
                let new = changed.get(&scalar.span.start);
                if new.is_some() {
                    self.changed.insert(self.scalars);
                }
                self.add_scalar(scalar, new.map_or(&*scalar.value, String::as_str));
            }
            YamlNode::Sequence(sequence) => {
                self.add_sign('[', sequence.anchor);
                for item in &sequence.items {
                    self.add_node(item, changed);
                }
                // without the end, `[[a], b]` and `[[a, b]]` would have the same hash
                self.add_sign(']', 0);
            }
            YamlNode::Mapping(mapping) => {
                self.add_sign('{', mapping.anchor);
                for entry in &mapping.entries {
                    self.add_node(&entry.key, changed);
                    self.add_node(&entry.value, changed);
                }
                self.add_sign('}', 0);
            }
            YamlNode::Alias(alias) => self.add_sign('*', alias.anchor),
        }
    }

    fn add_sign(&mut self, sign: char, anchor: usize) {
        (sign, anchor).hash(&mut self.hasher);
    }

    fn add_scalar(&mut self, scalar: &YamlScalar<'_>, value: &str) {
        let style: Option<ScalarStyle> =
            (!self.changed.contains(&self.scalars)).then_some(scalar.style);
        self.scalars += 1;
        self.add_sign('a', scalar.anchor);
        value.hash(&mut self.hasher);
        style.map(|style| style as u8).hash(&mut self.hasher);
        scalar.tag().hash(&mut self.hasher);
    }

    /// Whether `text` up to the byte `end` reads as the documents that were added. The marker of a
    /// further document may follow.
    ///
    /// The general parser reads `text`, independently of the reader of the documents: an error of
    /// the simple reader must not confirm itself.
    pub(crate) fn matches(&self, text: &str, end: usize) -> bool {
        let mut other = ParseFingerprint {
            changed: self.changed.clone(),
            ..ParseFingerprint::default()
        };
        for document in YamlDocuments::new(text, 0..end) {
            let Ok(document) = document else { return false };
            other.add(&document, &BTreeMap::new());
        }
        other.hasher.finish() == self.hasher.finish()
    }
}

/// Whether a plain scalar needs no quotes if `new` replaces `old`: `new` must have as many square
/// brackets as `old`. If `old` has none and is parsed as a string, so must `new`.
pub(crate) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!is_plain_text(old) || is_plain_text(new))
}

/// Whether `text` has no square brackets and reads as a string when it is written without quotes.
fn is_plain_text(text: &str) -> bool {
    !text.contains(['[', ']'])
        && yaml::from_str::<serde_yaml::Value>(text).is_ok_and(|value| value == text)
}

#[cfg(test)]
mod tests {
    use super::super::documents::documents;
    use super::*;

    #[test]
    fn a_text_with_another_value_does_not_match() {
        let source = "a: [b, b]\nc: d\n";
        let reads = |bytes: &str, to: &str| {
            let changed = BTreeMap::from([(4, to.to_owned())]);
            let mut fingerprint = ParseFingerprint::default();
            documents(source).for_each(|document| fingerprint.add(&document.unwrap(), &changed));
            let new = source.replacen('b', bytes, 1);
            fingerprint.matches(&new, new.len())
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
