//! The documents of a YAML stream, each read by the simple reader if possible, else by the general
//! parser.

use super::simple;
use landfall_model::document::{NotYaml, YamlDocument, YamlDocuments, YamlEntry, YamlNode};
use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;

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
pub(crate) fn documents_in(source: &str, part: Range<usize>) -> DocumentStream<'_> {
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
pub(crate) fn stream_parts(source: &str) -> Vec<Range<usize>> {
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
pub(crate) fn position_of(entries: &[YamlEntry<'_>], key: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.key.is_text(key))
}

/// The value of the first entry whose key is the text `key`.
pub(crate) fn value_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n YamlNode<'n>> {
    position_of(entries, key).map(|at| &entries[at].value)
}

/// The value of `key`, if it is a scalar that is neither empty nor null.
pub(crate) fn text_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?.scalar()?.text()
}

/// The value of `key`, if it is a scalar, even an empty one.
pub(crate) fn scalar_of<'n>(entries: &'n [YamlEntry<'n>], key: &str) -> Option<&'n str> {
    value_of(entries, key)?
        .scalar()
        .map(|scalar| &*scalar.value)
}
