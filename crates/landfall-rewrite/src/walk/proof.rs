//! Proves that edits of bytes are the intended changes of values.

use crate::edit;
use crate::occurrence::Occurrence;
use crate::scan_result::sorted_edits;
use crate::yaml::{self, ParseFingerprint};
use std::collections::BTreeMap;
use std::ops::Range;

/// Whether a part of `source`, with the edits of `found` applied, reads as before except for the
/// new values in `changed`. Each key of `changed` is the offset of the first byte of the scalar.
pub(super) fn reads_as_intended(
    source: &str,
    part: &Range<usize>,
    found: &[Occurrence],
    changed: &BTreeMap<usize, String>,
) -> bool {
    let mut fingerprint = ParseFingerprint::default();
    let documents = yaml::documents_in(source, part.clone()).flatten();
    documents.for_each(|document| fingerprint.add(&document, changed));
    let mut new = edit::apply(&sorted_edits(found), source, part.clone());
    let end = new.len();
    // the next document marker must still begin a line: an edit could have swallowed the newline
    new.push_str(&source[part.end..source.len().min(part.end + "---".len())]);
    fingerprint.matches(&new, end)
}
