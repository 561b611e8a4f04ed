//! Cuts a YAML stream at its document markers, so that each document can be read, or skipped, by
//! itself.

use memchr::{memchr, memchr_iter, memmem};
use std::ops::Range;

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
