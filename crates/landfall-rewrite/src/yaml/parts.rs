//! A stream of YAML is cut at its document markers, so that each document can be read, or passed
//! over, by itself.

use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;

const MARK: &str = "\u{feff}";

/// The bytes of `source`, from one `---` at the beginning of a line to the next: in whatever a
/// marker stands, it ends it, or the text is no YAML (YAML 1.2.2, 9.1). One part may hold several
/// documents, or none. Where lines or documents may begin otherwise, all of it is one part.
pub(crate) fn parts(source: &str) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let is_marker =
        |at: &usize| matches!(bytes.get(at + 3), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
    let mut starts = vec![0];
    if is_plain(source) {
        starts.extend(
            memmem::find_iter(bytes, "\n---")
                .map(|at| at + 1)
                .filter(is_marker),
        );
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}

/// Whether lines end with `\n` alone or with `\r` before it, and nothing that says how to read a
/// document stands before its `---`.
fn is_plain(source: &str) -> bool {
    let bytes = source.as_bytes();
    let text = source.trim_start_matches(MARK);
    let directive = text.starts_with('%') || memmem::find(bytes, b"\n%").is_some();
    let marks = memmem::find_iter(bytes, MARK).any(|at| at > 0);
    let returns = memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    !directive && !marks && !returns && memchr(0, bytes).is_none()
}
