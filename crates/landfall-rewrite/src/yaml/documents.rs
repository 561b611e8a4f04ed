//! The documents of a YAML stream, each read by the fast reader where it can, else by the general
//! one.

use super::granit::Granit;
use super::node::{Document, NotYaml};
use super::parts::parts;
use super::simple;
use std::ops::Range;

/// The documents of the stream `source`, one after the other, so that no more than one is held. The
/// last item is an error where the text is no YAML.
pub(crate) fn documents(source: &str) -> Documents<'_> {
    Documents {
        source,
        parts: parts(source).into_iter(),
        slow: None,
    }
}

/// The documents of one of the [`parts`] of `source`.
pub(crate) fn documents_in(source: &str, part: Range<usize>) -> Documents<'_> {
    Documents {
        source,
        parts: vec![part].into_iter(),
        slow: None,
    }
}

/// The documents of a stream.
pub(crate) struct Documents<'a> {
    source: &'a str,
    parts: std::vec::IntoIter<Range<usize>>,
    slow: Option<Granit<'a>>,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, NotYaml>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.slow.as_mut().and_then(Granit::next) {
                Some(Ok(document)) => return Some(Ok(document)),
                Some(Err(error)) => {
                    (self.slow, self.parts) = (None, Vec::new().into_iter());
                    return Some(Err(error));
                }
                None => self.slow = None,
            }
            let part = self.parts.next()?;
            match simple::read(self.source, &part) {
                Some(None) => {}
                Some(Some(document)) => return Some(Ok(document)),
                None => self.slow = Some(Granit::new(self.source, part)),
            }
        }
    }
}
