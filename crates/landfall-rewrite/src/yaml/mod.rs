//! YAML documents as trees of nodes with their byte ranges in the text
//! (`landfall_model::document`), read by one of two readers: `simple` reads nearly all documents,
//! the general parser the others.

mod plain;
mod simple;
#[cfg(test)]
mod tests;

use landfall_model::document::{NotYaml, YamlDocuments, yaml};
use memchr::{memchr, memchr_iter, memmem};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

pub(super) use landfall_model::document::{
    ScalarStyle, YamlDocument, YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence,
    comment_spans,
};

// The documents of a YAML stream, each read by the simple reader if possible, else by the general
// parser.

/// The documents of the stream `source`, one after the other, so that only one is held at a time.
/// The last item is an error if the text is not YAML.
pub(crate) fn documents(source: &str) -> DocumentStream<'_> {
    DocumentStream {
        source,
        parts: stream_parts(source).into_iter(),
        general: None,
    }
}

/// The documents of one of the [`stream_parts`] of `source`.
pub(super) fn documents_in(source: &str, part: Range<usize>) -> DocumentStream<'_> {
    DocumentStream {
        source,
        parts: vec![part].into_iter(),
        general: None,
    }
}

/// Reads the documents of a stream.
pub(crate) struct DocumentStream<'a> {
    source: &'a str,
    parts: std::vec::IntoIter<Range<usize>>,
    /// The rest of a part that the simple reader does not read.
    general: Option<YamlDocuments<'a>>,
}

impl<'a> Iterator for DocumentStream<'a> {
    type Item = Result<YamlDocument<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.general.as_mut().and_then(Iterator::next) {
                Some(Ok(document)) => return Some(Ok(document)),
                Some(Err(error)) => {
                    // after an error, it is not certain where the next document begins
                    self.general = None;
                    self.parts = Vec::new().into_iter();
                    return Some(Err(error));
                }
                None => self.general = None,
            }
            let part = self.parts.next()?;
            match simple::read(self.source, &part) {
                Some(Some(document)) => return Some(Ok(document)),
                Some(None) => {}
                None => self.general = Some(YamlDocuments::new(self.source, part)),
            }
        }
    }
}

// Cuts a YAML stream at its document markers, so that each document can be read, or skipped, by
// itself.

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The byte ranges of `source` from one `---` at the beginning of a line to the next. In valid
/// YAML, no node continues after such a marker (YAML 1.2.2, 9.1). One part may contain several
/// documents, or none. If lines or documents may begin in another way, the whole text is one part.
pub(super) fn stream_parts(source: &str) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let mut starts = vec![0];
    if has_plain_markers(source) {
        let markers = memmem::find_iter(bytes, "\n---").map(|at| at + 1);
        starts.extend(
            markers.filter(|at| {
                matches!(bytes.get(at + 3), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
            }),
        );
    }
    let ends = starts[1..].iter().copied().chain([bytes.len()]);
    let parts = starts.iter().zip(ends);
    parts.map(|(start, end)| *start..end).collect()
}

/// Whether all lines end with `\n` or `\r\n`, and the text has neither directives nor NUL bytes nor
/// byte order marks after its beginning.
fn has_plain_markers(source: &str) -> bool {
    let bytes = source.as_bytes();
    let text = source.trim_start_matches(BYTE_ORDER_MARK);
    let has_directive = text.starts_with('%') || memmem::find(bytes, b"\n%").is_some();
    // a byte order mark may begin each document (YAML 1.2.2, 5.2)
    let has_inner_mark = memmem::find_iter(bytes, BYTE_ORDER_MARK).any(|at| at > 0);
    let has_lone_return = memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    !has_directive && !has_inner_mark && !has_lone_return && memchr(0, bytes).is_none()
}

// Look-ups by key in the entries of a mapping.

/// The position of the entry whose key is the text `key`.
pub(super) fn position_of(entries: &[YamlEntry<'_>], key: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.key.is_text(key))
}

/// The value of the first entry whose key is the text `key`.
pub(super) fn value_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n YamlNode<'n>> {
    position_of(entries, key).map(|at| &entries[at].value)
}

/// The entries of the mapping that is the value of `key`; empty if there is none.
pub(super) fn entries_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> &'n [YamlEntry<'n>] {
    value_of(entries, key)
        .map(YamlNode::entries)
        .unwrap_or_default()
}

/// The items of the list that is the value of `key`; empty if there is none.
pub(super) fn items_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> &'n [YamlNode<'n>] {
    value_of(entries, key)
        .map(YamlNode::items)
        .unwrap_or_default()
}

/// The value of `key`, if it is a scalar that is neither empty nor null.
pub(super) fn text_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?.scalar()?.text()
}

/// The position and the value of the entry `key`, if the value is a text.
pub(super) fn text_entry<'n>(
    entries: &'n [YamlEntry<'n>],
    key: &str,
) -> Option<(usize, &'n YamlScalar<'n>)> {
    let at = position_of(entries, key)?;
    let scalar = entries[at].value.scalar()?;
    scalar.text().is_some().then_some((at, scalar))
}

/// The value of `key`, if it is a scalar, even an empty one.
pub(super) fn scalar_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?
        .scalar()
        .map(|scalar| &*scalar.value)
}

// Fingerprints of parsed texts, which prove that a rewritten text has exactly the intended values.

/// A hash over all nodes of a text, with the intended changes applied. It is compared with that of
/// the rewritten text, so that neither tree has to be held in memory.
#[derive(Default)]
pub(super) struct ParseFingerprint {
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
pub(super) fn stays_plain(old: &str, new: &str) -> bool {
    let brackets = |text: &str| text.matches(['[', ']']).count();
    brackets(old) == brackets(new) && (!is_plain_text(old) || is_plain_text(new))
}

/// Whether `text` has no square brackets and reads as a string when it is written without quotes.
fn is_plain_text(text: &str) -> bool {
    !text.contains(['[', ']'])
        && yaml::from_str::<serde_yaml::Value>(text).is_ok_and(|value| value == text)
}
