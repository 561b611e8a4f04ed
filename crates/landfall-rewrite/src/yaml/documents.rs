//! The documents of a YAML stream, each read by the simple reader if possible, else by the general
//! parser.

use super::simple;
use super::stream_parts::stream_parts;
use landfall_model::document::{NotYaml, YamlDocument, YamlDocuments};
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
