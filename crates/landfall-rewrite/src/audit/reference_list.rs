//! Finds the images of plain lists of references.

use crate::walk::ImageCandidate;
use landfall_model::{ImageRef, has_host};

/// The references of a plain list: one per line, `#` begins a comment. `None` if `text` is not such
/// a list: every line must be a reference with a path or tag, and at least one of them must have a
/// tag, a digest or a host, because paths of files look like short names of images.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let mut found = Vec::new();
    let mut has_sure = false;
    let text_start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut end = text_start;
    for line in text[text_start..].split_inclusive('\n') {
        let start = end + line.len() - line.trim_start().len();
        end += line.len();
        let written = line.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let reference = written.parse::<ImageRef>().ok()?;
        let is_sure = reference.is_pinned() || has_host(written);
        if !is_sure && !written.contains('/') {
            return None;
        }
        has_sure |= is_sure;
        found.extend(ImageCandidate::all(start, &[], written, true, true));
    }
    has_sure.then_some(found)
}
