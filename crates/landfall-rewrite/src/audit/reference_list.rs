//! Finds the images of plain lists of references, also in the code blocks of a page.

use super::page::code_blocks;
use crate::walk::ImageCandidate;
use landfall_model::{ImageRef, has_host};

/// The references of a plain list: one per line, `#` begins a comment. `None` if `text` is not such
/// a list: every line must be a reference with a path or tag, and at least one of them must have a
/// tag, a digest or a host, because paths of files look like short names of images.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let text_start = text.len() - text.trim_start_matches('\u{feff}').len();
    let (found, has_sure) = references(text, text_start)?;
    has_sure.then_some(found)
}

/// The references in the code blocks of a page in Markdown that are such lists. One list with a
/// tag, a digest or a host is enough for all of them.
pub(super) fn page_candidates(text: &str) -> Vec<ImageCandidate> {
    let lists = code_blocks(text)
        .into_iter()
        .filter_map(|block| references(&text[..block.end], block.start));
    let lists: Vec<_> = lists.collect();
    let has_sure = lists.iter().any(|(_, has_sure)| *has_sure);
    let found = lists.into_iter().flat_map(|(found, _)| found);
    found.filter(|_| has_sure).collect()
}

/// The references of `text` from the byte `text_start` on, and whether one of them has a tag, a
/// digest or a host. `None` if a line is not a reference.
fn references(text: &str, text_start: usize) -> Option<(Vec<ImageCandidate>, bool)> {
    let mut found = Vec::new();
    let mut has_sure = false;
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
    Some((found, has_sure))
}
