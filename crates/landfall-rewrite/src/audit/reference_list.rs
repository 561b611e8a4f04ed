//! Finds the images of plain lists of references.

use crate::walk::ImageCandidate;
use landfall_model::{ImageRef, has_host};

/// The references of a plain list: one per line, `#` begins a comment. `None` if `text` is not such
/// a list.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let mut found = Vec::new();
    let text_start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut end = text_start;
    for line in text[text_start..].split_inclusive('\n') {
        let start = end + line.len() - line.trim_start().len();
        end += line.len();
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let reference = written.parse::<ImageRef>().ok();
        reference.filter(|reference| reference.is_pinned() || has_host(written))?;
        found.extend(ImageCandidate::all(start, &[], written, true, true));
    }
    (!found.is_empty()).then_some(found)
}
